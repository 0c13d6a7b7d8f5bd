package caller

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// setDeadline sets the end of the call: its timeout after its start, or after the
// approval that it had to wait for, but never later than the context's deadline.
func (c *call) setDeadline(ctx context.Context) *rpc.Error {
	from, total := c.start, rpc.EffectiveTimeout(c.request.Timeout, 0)
	if c.request.Timeout == 0 {
		total = c.budget()
		// A timeout that the caller gave covers the approval too; see approve.
		if !c.approved.IsZero() {
			from = c.approved
		}
	}
	c.deadline = from.Add(total)
	if d, ok := ctx.Deadline(); ok && d.Before(c.deadline) {
		c.deadline = d
	}
	c.until = c.deadline
	return nil
}

// budget is how long a call takes at most if its caller does not say: the
// capability's timeout for each attempt that its retry policy allows, and the waits
// between them, but no more than [rpc.MaxTimeout]. Otherwise a policy that retries
// timeouts could do so only for callers that ask for more time than the capability
// declares.
func (c *call) budget() time.Duration {
	attempt := c.attemptTimeout()
	retries := c.retryPolicy()
	if retries == nil || c.goesToQueue() { // the broker repeats what it keeps
		return attempt
	}
	backoff := policy.NewBackoff(retries)
	total := attempt
	for n := 1; n < backoff.MaxAttempts() && total < rpc.MaxTimeout; n++ {
		const longest = 0 // of the random share that is taken off a wait
		total += min(backoff.Delay(n, longest), rpc.MaxTimeout) + attempt
	}
	return min(total, rpc.MaxTimeout)
}

// attemptTimeout is how long one attempt may take, by the contract.
func (c *call) attemptTimeout() time.Duration {
	if c.capability == nil {
		return rpc.DefaultTimeout
	}
	return rpc.EffectiveTimeout(0, c.capability.Timeout)
}

// goesToQueue reports whether a queue keeps the requests of the capability.
func (c *call) goesToQueue() bool {
	return c.capability != nil && c.capability.Delivery == capability.DeliveryDurable && c.client.cfg.Queues[c.peer.Transport] != nil
}

// setAttemptDeadline gives an attempt what is left of the call. Where another
// attempt may follow, it gets no more than the capability's own timeout, or the
// first one would use up the time of all.
func (c *call) setAttemptDeadline(another bool) {
	c.until = c.deadline
	if !another {
		return
	}
	if until := time.Now().Add(c.attemptTimeout()); until.Before(c.until) {
		c.until = until
	}
}

// timedOut is the error of an attempt whose time is up.
func (c *call) timedOut(cause error) *rpc.Error {
	return rpc.NewError(rpc.CodeTimeout, cause,
		"agent-rpc timed out after %dms (correlationId=%s)", c.until.Sub(c.start).Milliseconds(), c.ids.correlation)
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
