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
func OpenFolders(parent string) (*Folders, error) {
	if err := OwnFolder(parent); err != nil {
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
func OwnFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("temporary folders: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("temporary folders: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("temporary folders: %s is not a folder of this user alone (%s): remove it, or set TMPDIR", path, info.Mode())
	}
	return nil
}

// Make makes the folder of one call.
func (f *Folders) Make() (string, error) {
	path, err := os.MkdirTemp(f.parent, "")
	if err != nil {
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
