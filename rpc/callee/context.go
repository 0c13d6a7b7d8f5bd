package callee

import (
	"context"
	"sync"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/ctxkey"
)

// A callContext is the context of one request. It ends at the deadline, when it is
// cancelled and when the inbox stops by force.
//
// Most handlers return before anything waits for that. So the timer, the channel and
// the parent of child contexts are made only when somebody asks for them: full is
// then an ordinary context and decides everything.
type callContext struct {
	root       context.Context
	deadline   time.Time
	invocation *rpc.Invocation // set before the handler runs

	mu     sync.Mutex
	ended  bool                    // before there was full; guarded by mu
	cause  error                   // why it ended; guarded by mu
	full   context.Context         // guarded by mu
	cancel context.CancelCauseFunc // of full; guarded by mu
}

var _ context.Context = (*callContext)(nil)

// end cancels the context; a nil cause is context.Canceled. The first cause counts.
func (c *callContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	// cancel stops the timer as well.
	case c.full != nil:
		c.cancel(cause)
	case !c.ended:
		c.ended, c.cause = true, cause
	}
}

// Deadline implements [context.Context].
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements [context.Context].
func (c *callContext) Done() <-chan struct{} { return c.whole().Done() }

// Err implements [context.Context]. It notices a passed deadline without a timer.
func (c *callContext) Err() error {
	if c.runsAt(time.Now()) {
		return nil
	}
	return c.whole().Err()
}

// runsAt reports whether the context has not ended at a time, which is now. False leaves
// it open: whatever waits for the context may know more.
func (c *callContext) runsAt(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full == nil && !c.ended && c.root.Err() == nil && now.Before(c.deadline)
}

// Value implements [context.Context]. context.Cause and child contexts look for
// values of their own, which only the whole context has.
func (c *callContext) Value(key any) any {
	if key == (ctxkey.Invocation{}) {
		if c.invocation == nil {
			return nil
		}
		return c.invocation
	}
	return c.whole().Value(key)
}

// restart gives the context another deadline, unless it has ended already. No context
// that was made from it may still be in use.
func (c *callContext) restart(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full != nil {
		if c.full.Err() != nil {
			return
		}
		c.cancel(nil) // frees what it holds
		c.full, c.cancel = nil, nil
	}
	c.deadline = deadline
}

// whole returns the ordinary context, which it makes once.
func (c *callContext) whole() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full != nil {
		return c.full
	}
	ctx, cancel := context.WithCancelCause(c.root)
	if c.ended {
		cancel(c.cause)
	}
	// The deadline is the inner context, so that cancelling the outer one with a
	// cause ends both.
	ctx, stopTimer := context.WithDeadline(ctx, c.deadline)
	c.full = ctx
	c.cancel = func(cause error) { cancel(cause); stopTimer() }
	if c.ended {
		stopTimer()
	}
	return c.full
}
