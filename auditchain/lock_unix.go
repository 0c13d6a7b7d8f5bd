//go:build unix

package auditchain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// A writerLock is held by the one process that may write to a log. It is an
// advisory lock (flock) on a file beside the database, so the system releases
// it when the process ends in whatever way. The database itself is not locked
// this way: closing any descriptor of it would drop SQLite's own locks.
type writerLock struct{ file *os.File }

// lockWriter takes the lock of the database at path without waiting.
func lockWriter(path string) (*writerLock, error) {
	name := path + ".lock"
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault(path, "opening the lock file", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 200))
		_ = file.Close() // nothing was written
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fault(path, "locking "+name, err)
		}
		return nil, &Error{Code: CodeLocked, Path: path,
			Msg:  "another writer has the log open: " + strings.TrimSpace(string(holder)),
			Hint: "one agent, one log: stop that process or give this one another database; reading needs no lock"}
	}
	l := &writerLock{file}
	if err := l.sign(); err != nil {
		l.release()
		return nil, fault(path, "writing the lock file", err)
	}
	return l, nil
}

// sign tells whoever is refused who holds the lock.
func (l *writerLock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	text := fmt.Sprintf("process %d, since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

// release gives the lock back. The file stays: removing it would let two
// processes each lock a file of that name. Closing it would not do: a child that
// is being forked holds every descriptor until it executes its program.
func (l *writerLock) release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) // closing is the fallback
	_ = l.file.Close()
}
