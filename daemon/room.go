package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agentd/agentd/auditchain"
)

// ballast is the room that a disk must have before it counts as no longer full: enough
// for a batch of records. A small write proves nothing, since it may fit where a larger
// one has just failed, and the trouble would end and begin again.
const ballast = 256 << 10

// checkRoom returns an error if the disk of a file is full. It leaves nothing behind,
// and other failures to those who write the file itself.
func checkRoom(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".room-*")
	if err == nil {
		// Without a name the file goes with the process, whatever ends it.
		_ = os.Remove(file.Name())
		_, err = file.Write(make([]byte, ballast))
		err = errors.Join(err, file.Close())
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("there is no room for %d KiB on the disk of %s: %w", ballast>>10, path, err)
	}
	return nil
}

// nameFullDisk returns the error of opening an audit log, and of one on a full disk the error that
// says so: of some of its files SQLite tells only that they cannot be written.
func nameFullDisk(path string, err error) error {
	if auditchain.CodeOf(err) != auditchain.CodeIO {
		return err
	}
	full := checkRoom(path)
	if full == nil {
		return err
	}
	return &auditchain.Error{
		Code: auditchain.CodeFull, Path: path, Msg: "opening", Err: full,
		Hint: "free some disk space, and start the agent again",
	}
}
