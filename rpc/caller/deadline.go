package caller

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/rpc"
)

// setDeadline sets the end of the call: its timeout after its start, or after the
// approval that it had to wait for, but never later than the context's deadline.
func (c *call) setDeadline(ctx context.Context) *rpc.Error {
	declared := time.Duration(0)
	if c.capability != nil {
		declared = c.capability.Timeout
	}
	from := c.start
	// A timeout that the caller gave covers the approval too; see approve.
	if c.request.Timeout == 0 && !c.approved.IsZero() {
		from = c.approved
	}
	c.deadline = from.Add(rpc.EffectiveTimeout(c.request.Timeout, declared))
	if d, ok := ctx.Deadline(); ok && d.Before(c.deadline) {
		c.deadline = d
	}
	c.until = c.deadline
	return nil
}

// setAttemptDeadline gives an attempt what is left of the call. Where another
// attempt may follow, it gets no more than the capability's own timeout, or the
// first one would use up the time of all.
func (c *call) setAttemptDeadline(another bool) {
	c.until = c.deadline
	if !another || c.capability.Timeout == 0 {
		return
	}
	if until := time.Now().Add(c.capability.Timeout); until.Before(c.until) {
		c.until = until
	}
}

// gaveUp is the error of a call whose context has ended.
func (c *call) gaveUp(ctx context.Context) *rpc.Error {
	cause := context.Cause(ctx)
	// Err, not the cause: a caller may cancel with any cause of its own.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return rpc.NewError(rpc.CodeTimeout, cause,
			"agent-rpc timed out after %dms (correlationId=%s)", time.Since(c.start).Milliseconds(), c.ids.correlation)
	}
	return rpc.NewError(rpc.CodeCancelled, cause, "the caller cancelled the call")
}
