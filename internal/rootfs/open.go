package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// open opens a regular file for reading. The caller closes it.
func (t *Tree) open(path string) (io.ReadCloser, fs.FileInfo, error) {
	_, root, name, err := t.locate(path)
	if err != nil {
		return nil, nil, err
	}
	return t.openIn(root, name, path)
}

// openIn opens name below root; path is how the caller knows it.
func (t *Tree) openIn(root *os.Root, name, path string) (io.ReadCloser, fs.FileInfo, error) {
	// Before it is opened: opening some devices does something, such as rewinding a tape.
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, translate(path, err)
	}
	if err := t.judge(path, info); err != nil {
		return nil, nil, err
	}
	return t.openJudged(root, name, path)
}

// openJudged opens what name is by now, which may be another file than the one that was
// judged before. Opening a pipe does not wait for its other end this way, and what was
// opened is judged by its descriptor.
func (t *Tree) openJudged(root *os.Root, name, path string) (io.ReadCloser, fs.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, translate(path, err)
	}
	info, err := t.judgeOpened(path, file)
	if err != nil {
		_ = file.Close()
		return nil, nil, translate(path, err)
	}
	return file, info, nil
}

// judgeOpened judges what is open. A file that counts as one with a single name must still
// have the name that it was opened by, or the single one may lie elsewhere: somebody put a
// hard link there and took it away. That name is looked at after the count of names,
// because it never comes back: if it is there now, it was the one that was counted.
func (t *Tree) judgeOpened(path string, file *os.File) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err == nil {
		err = t.judge(path, info)
	}
	if err != nil {
		return nil, err
	}
	if isKernel(file) {
		return nil, failure.Errorf(failure.NotAllowed, "%s is not on a disk, but made up by the kernel", truncate.Quote(path))
	}
	if !t.options.HardLinks && !hasItsName(file) {
		return nil, failure.Errorf(failure.Unavailable, "%s was replaced while it was opened", truncate.Quote(path))
	}
	return info, nil
}

// judge refuses what is no file on a disk with one name.
func (t *Tree) judge(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return failure.Errorf(failure.InvalidArgument, "%s is a folder", truncate.Quote(path))
	case !mode.IsRegular():
		return failure.Errorf(failure.NotAllowed, "%s is no regular file, but a device, pipe or socket", truncate.Quote(path))
	case links(info) > 1 && !t.options.HardLinks:
		return failure.Errorf(failure.NotAllowed, "%s has several names (hard links), and one of them may lie elsewhere", truncate.Quote(path))
	}
	return nil
}

// links returns how many names a file has. An open file without a name has none.
func links(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink) //nolint:unconvert // it is narrower on other systems
}

// translate makes an error of the file system, which names places outside of the tree,
// into one for the caller.
func translate(path string, err error) error {
	if shown := failure.As(err); shown != nil {
		return shown
	}
	escape := isEscape(err)
	// The outer error has the path, which is the caller's.
	var outer *fs.PathError
	for errors.As(err, &outer) {
		err = outer.Err
	}
	name := truncate.Quote(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure.Errorf(failure.NotFound, "%s is not there", name).Because(err)
	case errors.Is(err, fs.ErrExist):
		return failure.Errorf(failure.NotAllowed, "%s is there already", name).Because(err)
	case errors.Is(err, fs.ErrPermission):
		return failure.Errorf(failure.NotAllowed, "%s may not be opened by this agent", name).Because(err)
	case errors.Is(err, syscall.ENOTDIR):
		return failure.Errorf(failure.NotFound, "a part of %s is no folder", name).Because(err)
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EOPNOTSUPP):
		// A socket, or a device without a driver.
		return failure.Errorf(failure.NotAllowed, "%s is no regular file", name).Because(err)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return failure.Errorf(failure.InvalidArgument, "%s is too long", name).Because(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS):
		return failure.Errorf(failure.Unavailable, "%s cannot be written: the disk is full or read-only", name).Because(err)
	case errors.Is(err, syscall.ELOOP), escape:
		return failure.Errorf(failure.NotAllowed, "%s leads out of the folder, or in a circle", name).Because(err)
	}
	return failure.Errorf(failure.Unavailable, "%s cannot be opened or read", name).Because(err)
}

// isEscape reports whether [os.Root] refused a path that leads outside. Package os has
// no name for that error.
func isEscape(err error) bool {
	return strings.HasSuffix(err.Error(), "path escapes from parent")
}
