package sandbox

import (
	"os"

	"github.com/agentd/agentd/internal/procmark"
)

// Available returns what the kernel has.
func Available() Layers {
	_, err := procmark.Of(os.Getpid())
	return Layers{Landlock: landlockVersion(), Seccomp: hasSeccomp(), Marks: err == nil}
}
