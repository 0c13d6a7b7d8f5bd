// Package proctree reads the tree of processes: who is whose child, and when it began.
//
// The tree changes while it is read, and a process id is used again once its process
// has been waited for. Each function says what it can promise nevertheless. Only Linux
// shows its tree; other systems return [ErrUnsupported].
package proctree

import "errors"

// ErrUnsupported is returned on systems other than Linux.
var ErrUnsupported = errors.New("proctree: this system does not show its processes")

// ErrChanged means that the tree has changed while it was read.
var ErrChanged = errors.New("proctree: the processes have changed meanwhile")

// A Process is what the kernel shows to everybody of one process.
type Process struct {
	PID int
	// Parent is the process id of its parent, and 0 for one whose parent is in another
	// namespace of process ids.
	Parent int
	// Group is its process group.
	Group int
	// Started counts the clock ticks from the boot to its start.
	Started uint64
	// Zombie is set when it has ended and has not been waited for.
	Zombie bool
}
