package rootfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/failure"
)

// maxEntries bounds how many names of one folder are read. Sorting needs all of them.
const maxEntries = 10_000

// An Entry is what is known of a file or folder without opening it.
type Entry struct {
	Name     string    `json:"name"`
	Type     string    `json:"type"` // "file", "folder", "link" or "other"
	Size     int64     `json:"size"` // of a file
	Modified time.Time `json:"modified,omitzero"`
}

// List returns up to limit entries of a folder, sorted by name, after the name after;
// more says that there are further ones. The path "" lists the folders of the tree.
func (t *Tree) List(ctx context.Context, dir, after string, limit int) (entries []Entry, more bool, err error) {
	if dir == "" && t.folders[""] == nil {
		for _, name := range t.names {
			if name > after {
				entries = append(entries, Entry{Name: name, Type: "folder"})
			}
		}
		return cut(entries, limit)
	}
	root, name, err := t.dir(dir)
	if err != nil {
		return nil, false, err
	}
	all, err := readDir(ctx, root, name, dir)
	if err != nil {
		return nil, false, err
	}
	for _, e := range all {
		if e.Name() <= after {
			continue
		}
		entry := Entry{Name: strings.ToValidUTF8(e.Name(), "�"), Type: kind(e.Type())}
		if info, err := e.Info(); err == nil {
			entry.Modified = info.ModTime().UTC()
			if e.Type().IsRegular() {
				entry.Size = info.Size()
			}
		}
		if entries = append(entries, entry); len(entries) > limit {
			break
		}
	}
	return cut(entries, limit)
}

func cut(entries []Entry, limit int) ([]Entry, bool, error) {
	if len(entries) > limit {
		return entries[:limit], true, nil
	}
	return entries, false, nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeSymlink != 0:
		return "link"
	}
	return "other"
}

// dir locates a folder. The path "" is that of a tree whose one folder has no name.
func (t *Tree) dir(dir string) (*os.Root, string, error) {
	if f := t.folders[""]; f != nil && dir == "" {
		root, err := f.current()
		if err != nil {
			return nil, "", failure.Errorf(failure.Unavailable, "the folder is not there at present").Because(err)
		}
		return root, ".", nil
	}
	_, root, name, err := t.locate(dir)
	return root, name, err
}

// readDir reads the names of a folder, sorted. shown is how the caller knows it.
func readDir(ctx context.Context, root *os.Root, name, shown string) ([]fs.DirEntry, error) {
	if ended := failure.Ended(ctx, "reading the folder"); ended != nil {
		return nil, ended
	}
	// A pipe in place of the folder is refused rather than waited for.
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, translate(shown, err)
	}
	defer file.Close() //nolint:errcheck // a reader loses nothing
	entries, err := file.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, translate(shown, err)
	}
	if len(entries) > maxEntries {
		return nil, failure.Errorf(failure.TooLarge, "the folder has more than %d entries", maxEntries)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// join is the path of an entry as the caller writes it.
func join(dir, name string) string { return path.Join(dir, name) }
