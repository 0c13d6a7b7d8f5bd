package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// removeAtOnce is how long the end of a call waits for its temporary folder to go. What
	// is left then goes in the background.
	removeAtOnce = 100 * time.Millisecond
	// most folders that wait to be removed. The calls of those that come later wait.
	maxWaiting = 256
)

// Folders makes the temporary folders of an agent's calls, and removes them. They are
// below one folder, in which nobody else makes anything. It is safe for concurrent use.
type Folders struct {
	parent  string
	waiting chan string
	stop    chan struct{}
	done    sync.WaitGroup
}

// OpenFolders returns the folders below parent, an [OwnFolder] of the agent: what is there
// is left over from a process that was killed, and is removed. Close ends what it begins.
func OpenFolders(parent string) (*Folders, error) { return openFolders(parent, OwnFolder) }

// OpenOthersFolders returns folders that other users are given. Their parent is an
// [EnterableFolder].
func OpenOthersFolders(parent string) (*Folders, error) { return openFolders(parent, EnterableFolder) }

func openFolders(parent string, own func(string) error) (*Folders, error) {
	if err := own(parent); err != nil {
		return nil, err
	}
	leftOver, err := os.ReadDir(parent)
	if err != nil {
		return nil, fmt.Errorf("temporary folders: %w", err)
	}
	f := &Folders{parent: parent, waiting: make(chan string, maxWaiting), stop: make(chan struct{})}
	f.done.Go(f.clean)
	for _, entry := range leftOver {
		f.Remove(filepath.Join(parent, entry.Name()))
	}
	return f, nil
}

// OwnFolder makes a folder for this user alone, in one that is such a folder or may be
// written by everybody. It refuses one that another user has made, or can enter.
func OwnFolder(path string) error { return ownFolder(path, 0o077) }

// EnterableFolder makes a folder of this user that others can enter, and not list. What is
// in it needs modes of its own.
func EnterableFolder(path string) error {
	if err := ownFolder(path, 0o066); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o711); err != nil { //nolint:gosec // it is for others, too
		return fmt.Errorf("temporary folders: %w", err)
	}
	return nil
}

// ownFolder makes a folder, and refuses one of another user, and one that others may use
// more than the forbidden bits of its mode say.
func ownFolder(path string, forbidden os.FileMode) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("temporary folders: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("temporary folders: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&forbidden != 0 {
		return fmt.Errorf("temporary folders: %s is not a folder of this user alone (%s): remove it, or set TMPDIR", path, info.Mode())
	}
	return nil
}

// Make makes the folder of one call, which is for nobody but the user. Nil is the user of
// this process.
func (f *Folders) Make(u *User) (string, error) {
	path, err := os.MkdirTemp(f.parent, "")
	if err == nil && u != nil {
		err = giveFolder(path, u)
	}
	if err != nil {
		if path != "" {
			_ = os.Remove(path) // it is empty
		}
		return "", fmt.Errorf("temporary folder: %w", err)
	}
	return path, nil
}

// Remove removes a folder that Make has made. It returns when the folder has gone, or soon:
// the rest of a large one goes in the background.
func (f *Folders) Remove(path string) {
	if removeTree(path, time.Now().Add(removeAtOnce)) {
		return
	}
	select {
	case f.waiting <- path:
	case <-f.stop:
	}
}

// clean removes what waits.
func (f *Folders) clean() {
	for {
		select {
		case <-f.stop:
			return
		case path := <-f.waiting:
			for !removeTree(path, time.Now().Add(removeAtOnce)) && exists(path) {
				select {
				case <-f.stop:
					return // the next process of the agent removes it
				case <-time.After(removeAtOnce): // others use the disk, too
				}
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Close stops removing. What is left goes when the agent starts again.
func (f *Folders) Close() {
	close(f.stop)
	f.done.Wait()
	_ = os.Remove(f.parent) // it may hold something
}
