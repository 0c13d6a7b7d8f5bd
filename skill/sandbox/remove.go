package sandbox

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// removeTree removes a folder and what is below it, and reports whether it has gone by the
// deadline. What is there is a skill's work: folders without permissions, links, names of any
// kind, and nesting deeper than there are descriptors. It follows no link out of the folder,
// and holds few descriptors: folders below are moved to the top before they are emptied.
func removeTree(path string, deadline time.Time) bool {
	if os.Remove(path) == nil { // most are empty
		return true
	}
	// Its parent is not the skill's, so it is still the folder that was made.
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a folder
		return errors.Is(err, fs.ErrNotExist)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return false
	}
	r := remover{root: root, deadline: deadline}
	done := r.emptyTop()
	root.Close()
	return done && os.Remove(path) == nil
}

// A remover empties one tree.
type remover struct {
	root     *os.Root
	deadline time.Time
}

// emptyTop removes all that is in the tree. Each round takes some of the entries at the
// top, where emptied folders have left others.
func (r *remover) emptyTop() bool {
	for {
		entries, ok := r.some(".")
		if !ok || len(entries) == 0 {
			return ok
		}
		for _, entry := range entries {
			if r.root.Remove(entry.Name()) == nil {
				continue
			}
			if !entry.IsDir() || !r.empty(entry.Name()) || r.root.Remove(entry.Name()) != nil {
				return false
			}
		}
	}
}

// empty removes the files of a folder at the top, and moves the folders in it there.
func (r *remover) empty(folder string) bool {
	_ = r.root.Chmod(folder, 0o700)
	for {
		entries, ok := r.some(folder)
		if !ok || len(entries) == 0 {
			return ok
		}
		for _, entry := range entries {
			name := filepath.Join(folder, entry.Name())
			if r.root.Remove(name) != nil && (!entry.IsDir() || !r.lift(name)) {
				return false
			}
		}
	}
}

// some reads some entries of a folder, unless the time is over.
func (r *remover) some(folder string) ([]os.DirEntry, bool) {
	const batch = 256
	dir, err := r.root.Open(folder)
	if err != nil {
		return nil, false
	}
	defer dir.Close() //nolint:errcheck // it was only read
	if time.Now().After(r.deadline) {
		return nil, false
	}
	entries, err := dir.ReadDir(batch)
	return entries, err == nil || errors.Is(err, io.EOF)
}

// lift moves a folder to the top, by a name that no skill has taken: it cannot know it.
func (r *remover) lift(folder string) bool {
	_ = r.root.Chmod(folder, 0o700) // moving a folder writes to it
	return r.root.Rename(folder, ".lifted-"+rand.Text()) == nil
}
