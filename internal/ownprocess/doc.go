// Package ownprocess protects the process that it runs in from other processes of the
// same user. It is for programs that consist of agentd alone: what it does holds for the
// whole process and all that it starts.
package ownprocess

import "errors"

// ErrUnsupported is returned on systems other than Linux.
var ErrUnsupported = errors.New("ownprocess: this system does not protect a process from others of its user")
