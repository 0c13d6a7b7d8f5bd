//go:build unix

package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// A Lock is an advisory lock (flock) on a file beside the one it protects. The
// system releases it when the process ends, in whatever way. The protected file
// is not locked itself: closing any descriptor of a database would drop SQLite's
// own locks, and a file that is replaced takes its lock along.
type Lock struct{ file *os.File }

// Acquire takes the lock on the file called name, without waiting, and creates
// the file if there is none. It does not follow a symbolic link, since the file that
// one leads to would lose its content. It fails with a [*HeldError], or an error of the
// file system.
func Acquire(name string) (*Lock, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 200))
		_ = file.Close() // nothing was written
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &os.PathError{Op: "flock", Path: name, Err: err}
		}
		return nil, &HeldError{Holder: strings.TrimSpace(string(holder))}
	}
	l := &Lock{file}
	if err := l.sign(); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// sign writes the holder into the file, for the message of those that come
// second.
func (l *Lock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	text := fmt.Sprintf("process %d, since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

// Held reports whether the file that the lock is on still has its name. A process
// that looks for the lock on a file that replaced it would not find it.
func (l *Lock) Held() bool {
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(l.file.Name())
	return err == nil && os.SameFile(mine, named)
}

// Release releases the lock. The file stays: removing it would let two processes
// each lock a file of that name. Closing the file would not be enough: a child
// process that is being forked holds every descriptor until it executes its
// program.
func (l *Lock) Release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) // closing is the fallback
	_ = l.file.Close()
}
