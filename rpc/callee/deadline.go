package callee

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// setDeadline ends the call when its caller stops waiting, and where the caller sets
// no deadline, by the capability's own timeout.
func (c *call) setDeadline() *rpc.Error {
	now := c.start // a moment ago, on this goroutine
	declared := now.Add(rpc.EffectiveTimeout(0, c.capability.Timeout))
	c.deadline = declared
	if c.request.Deadline != 0 {
		c.deadline = time.UnixMilli(c.request.Deadline).Add(c.inbox.limits.Load().ClockSkew)
		if !c.deadline.After(now) {
			return c.arrivedLate(now)
		}
		latest := now.Add(rpc.MaxTimeout)
		if c.delivery != nil { // a queued request's deadline is when the answer expires
			latest = declared
		}
		// A caller's clock may be ahead, or its deadline absurd; neither keeps a
		// skill running for longer than a call may take.
		if c.deadline.After(latest) {
			c.deadline = latest
		}
	}
	c.ctx.root, c.ctx.deadline = c.inbox.root, c.deadline
	return nil
}

// wrongClock is how late a request may arrive before its lateness is taken for that of a clock: no
// transport but a queue keeps a message for so long.
const wrongClock = 5 * time.Second

// arrivedLate is the refusal of a request that came after its deadline. Deadlines are points in time:
// to a host whose clock is ahead every request comes late, and who reads the error must know where
// to look.
func (c *call) arrivedLate(now time.Time) *rpc.Error {
	late := now.Sub(c.deadline)
	if c.delivery != nil || late < wrongClock {
		return rpc.NewError(rpc.CodeDeadlineExceeded, context.DeadlineExceeded, "the request arrived after its deadline")
	}
	return rpc.NewError(rpc.CodeDeadlineExceeded, context.DeadlineExceeded,
		"the request arrived %s after its deadline: compare the clock of %s with that of its caller, one of them is probably wrong", late.Round(time.Second), c.inbox.cfg.Self)
}

// checkInterrupted refuses to start a skill whose caller has stopped waiting: the
// checks before it may have taken until the deadline.
func (c *call) checkInterrupted(now time.Time) *rpc.Error {
	if c.ctx.runsAt(now) || c.ctx.Err() == nil {
		return nil
	}
	return c.interruptedUnrun("the deadline passed before the skill could begin")
}

// interruptedUnrun is interrupted for a request of which nothing has run: at a shutdown
// another replica may serve it.
func (c *call) interruptedUnrun(late string) *rpc.Error {
	if errors.Is(context.Cause(&c.ctx), ErrShutdown) {
		return wire.Draining(c.inbox.cfg.Self)
	}
	return c.interrupted(late)
}

// interrupted returns why the call's context has ended, or nil if it has not. late
// is the message for the deadline.
func (c *call) interrupted(late string) *rpc.Error {
	switch cause := context.Cause(&c.ctx); {
	case errors.Is(cause, ErrCallerCancelled):
		return rpc.NewError(rpc.CodeCancelled, cause, "the caller cancelled the call")
	case errors.Is(cause, ErrCallerGone):
		return rpc.NewError(rpc.CodeCancelled, cause, "the caller is gone")
	case errors.Is(cause, ErrShutdown):
		return rpc.NewError(rpc.CodeBusy, cause, "%s shut down before the skill had finished", c.inbox.cfg.Self)
	case errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		return rpc.NewError(rpc.CodeDeadlineExceeded, cause, "%s", late)
	}
	return nil
}
