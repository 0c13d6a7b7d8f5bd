//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"sync/atomic"
)

// supported is true where programs can be confined at all.
const supported = false

// Available returns what the kernel has: nothing here.
func Available() Layers { return Layers{} }

func confine(*Policy, string, []string) error {
	return errors.New("this system cannot confine programs")
}

var errNoThreads = errors.New("this system cannot confine threads")

func tryThread(context.Context, *atomic.Int32) error { return errNoThreads }

func startOnThread(context.Context, *Policy, *exec.Cmd, *atomic.Int32) error { return errNoThreads }

func isRefusal(error) bool { return false }

func answerHeld() error { return errNoThreads }

const held = "held" // see threads_linux.go
