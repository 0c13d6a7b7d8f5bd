package filelock

import "errors"

// ErrUnsupported is a system without locks that end with the process.
var ErrUnsupported = errors.New("filelock: this system has no flock; run agentd on Linux, macOS or a BSD")

// A HeldError is a lock that another holder has, in this process or another one.
type HeldError struct {
	// Holder is how the holder has identified itself: "process 17, since
	// 2026-01-31T12:00:00Z".
	// It is empty for a moment after the lock was taken.
	Holder string
}

func (e *HeldError) Error() string { return "held by " + e.Holder }
