package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

const (
	// mostThreads may exist at a time. Far fewer do while starts take their milliseconds. But
	// a thread cannot be killed, as a helper can: one that waits for a file system which does
	// not answer outlives its call, and at ten thousand threads the Go runtime gives up.
	mostThreads = 512
	// afterRefusal is how long helpers start programs before a thread is tried again.
	afterRefusal = time.Minute
)

// Threads starts confined programs without the helper: from threads of this process, each of
// which is confined for one program and ends before that program runs. It is safe for
// concurrent use. A nil Threads starts none; the helper starts what it does not, such as
// programs that run as another user.
type Threads struct {
	alive atomic.Int32              // threads that have not ended
	again atomic.Pointer[time.Time] // when to try after a refusal; nil where there was none
}

// OpenThreads starts this program so once, which reports what it is held to. The error says
// why it cannot be done here: the helper starts programs then, if [Probe] finds one.
func OpenThreads(ctx context.Context) (*Threads, error) {
	if IsHelper(os.Args) {
		return nil, ErrNotHelper // see Probe
	}
	t := &Threads{}
	if err := t.try(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// start starts a command; see startOnThread.
func (t *Threads) start(ctx context.Context, p *Policy, cmd *exec.Cmd) error {
	err := startOnThread(ctx, p, cmd, &t.alive)
	// What may trace a process can be changed while agentd runs.
	if isRefusal(err) && t.try(ctx) != nil && ctx.Err() == nil {
		t.tryLater()
		return fmt.Errorf("%w (the kernel does not permit what it did before: helpers start programs, until it does again)", err)
	}
	return err
}

// try starts this program; see tryThread.
func (t *Threads) try(ctx context.Context) error { return tryThread(ctx, &t.alive) }

func (t *Threads) tryLater() {
	again := time.Now().Add(afterRefusal)
	t.again.Store(&again)
}

// serve reports whether a command is started by a thread.
func (t *Threads) serve(ctx context.Context, p *Policy, cmd *exec.Cmd) bool {
	// A thread that is another user's could be killed by that user's programs, and the whole
	// process with it; and to limit another user's process takes a capability that agentd
	// rarely has.
	other := p.User != nil || cmd.SysProcAttr != nil && cmd.SysProcAttr.Credential != nil
	return t != nil && !other && t.alive.Load() < mostThreads && t.permitted(ctx)
}

// permitted reports whether the kernel permits such a start, as far as is known. After a
// refusal one call tries it now and then, and the others do not wait for that.
func (t *Threads) permitted(ctx context.Context) bool {
	again := t.again.Load()
	if again == nil {
		return true
	}
	next := time.Now().Add(afterRefusal)
	if time.Now().Before(*again) || !t.again.CompareAndSwap(again, &next) || t.try(ctx) != nil {
		return false
	}
	t.again.Store(nil)
	return true
}
