package auditchain

import (
	"errors"

	"github.com/agentd/agentd/auditchain/internal/filelock"
)

// lockWriter takes the lock that the one process holds which may write to the
// log at path.
func lockWriter(path string) (*filelock.Lock, error) {
	lock, err := filelock.Acquire(path + ".lock")
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, &Error{Code: CodeLocked, Path: path,
			Msg:  "another writer has the log open: " + held.Holder,
			Hint: "one agent, one log: stop that process or give this one another database; reading needs no lock"}
	}
	if errors.Is(err, filelock.ErrUnsupported) {
		return nil, &Error{Code: CodeUnsupported, Path: path, Msg: "writing an audit log", Err: err}
	}
	return lock, fault(path, "locking "+path+".lock", err)
}
