package sidecar

import (
	"errors"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/filelock"
)

// Lock takes the lock that only the one process holds which may write to the
// log at path.
func Lock(path string) (*filelock.Lock, error) {
	lock, err := filelock.Acquire(path + lockSuffix)
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, &auditerr.Error{Code: auditerr.CodeLocked, Path: path,
			Msg:  "another writer has the log open: " + held.Holder,
			Hint: "one agent, one log: stop that process or give this one another database; reading needs no lock"}
	}
	if errors.Is(err, filelock.ErrUnsupported) {
		return nil, &auditerr.Error{Code: auditerr.CodeUnsupported, Path: path, Msg: "writing an audit log", Err: err}
	}
	return lock, auditerr.Wrap(path, "locking "+path+lockSuffix, err)
}
