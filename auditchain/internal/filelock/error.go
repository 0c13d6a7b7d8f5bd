package filelock

import "errors"

// ErrUnsupported says that this system has no locks that end with the process.
var ErrUnsupported = errors.New("filelock: this system has no flock; run agentd on Linux, macOS or a BSD")

// A HeldError says that another holder, here or in another process, has the lock.
type HeldError struct {
	// Holder is what the holder says of itself: "process 17, since 2026-01-31T12:00:00Z".
	// It is empty for a moment after the lock was taken.
	Holder string
}

func (e *HeldError) Error() string { return "held by " + e.Holder }
