package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// links follows the symbolic links of many paths, which have most of their folders in common:
// what it knows of a path it asks the file system for once. It is for one look at the paths.
type links struct {
	known map[string]*link
	buf   []byte // for a target
}

func newLinks() *links { return &links{known: map[string]*link{}, buf: make([]byte, unix.PathMax)} }

// A link is what a path leads to.
type link struct {
	real string
	err  error
}

// follow returns a path without symbolic links, or why there is none, as
// [filepath.EvalSymlinks] does.
func (l *links) follow(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return filepath.EvalSymlinks(path)
	}
	path = filepath.Clean(path)
	if known := l.known[path]; known != nil {
		return known.real, known.err
	}
	// A path that leads to itself finds this.
	result := &link{err: &os.PathError{Op: "lstat", Path: path, Err: unix.ELOOP}}
	l.known[path] = result
	result.real, result.err = l.look(path)
	return result.real, result.err
}

// look asks for a path that is not known yet.
func (l *links) look(path string) (string, error) {
	folder, name := filepath.Split(path)
	if name == "" {
		return path, nil // the root
	}
	folder, err := l.follow(folder)
	if err != nil {
		return "", err
	}
	real := filepath.Join(folder, name)
	n, err := unix.Readlink(real, l.buf)
	if err == unix.EINVAL { //nolint:errorlint // a number of the kernel's
		return real, nil // there is something, and it is no link
	}
	if err != nil {
		return "", &os.PathError{Op: "readlink", Path: real, Err: err}
	}
	switch target := string(l.buf[:n]); {
	case strings.Contains(target, ".."): // of what is before it, which may be a link
		return filepath.EvalSymlinks(real)
	case filepath.IsAbs(target):
		return l.follow(target)
	default:
		return l.follow(filepath.Join(folder, target))
	}
}
