package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"sync/atomic"
)

// Threads starts confined programs without the helper: from threads of this process, each of
// which is confined for one program and ends before that program runs. It is safe for
// concurrent use. A nil Threads starts none; the helper starts what it does not, such as
// programs that run as another user.
type Threads struct {
	refused atomic.Bool
}

// OpenThreads starts this program so once, which reports what it is held to. The error says
// why it cannot be done here: the helper starts programs then.
func OpenThreads(ctx context.Context) (*Threads, error) {
	if err := tryThread(ctx); err != nil {
		return nil, err
	}
	return &Threads{}, nil
}

// start starts a command; see startOnThread.
func (t *Threads) start(ctx context.Context, p *Policy, cmd *exec.Cmd) error {
	err := startOnThread(ctx, p, cmd)
	// What may trace a process can be changed while agentd runs.
	if isRefusal(err) && tryThread(ctx) != nil && ctx.Err() == nil {
		t.refused.Store(true)
		return fmt.Errorf("%w (the kernel does not permit what it did at first: a helper starts programs from now on)", err)
	}
	return err
}

// serve reports whether a command is started by a thread.
func (t *Threads) serve(p *Policy, cmd *exec.Cmd) bool {
	// A thread that is another user's could be killed by that user's programs, and the whole
	// process with it; and to limit another user's process takes a capability that agentd
	// rarely has.
	other := p.User != nil || cmd.SysProcAttr != nil && cmd.SysProcAttr.Credential != nil
	return t != nil && !other && !t.refused.Load()
}
