package callee

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// maxApprovalWait bounds the wait of a request whose caller waits for no answer of its
// own. The [rpc.Approver] has a bound, too.
const maxApprovalWait = 24 * time.Hour

// errNobodyDecided is the cause of a denial for want of a decision.
var errNobodyDecided = errors.New("nobody decided")

// approve waits for a person's decision where a permission of this agent demands one. A
// caller is never trusted to have asked: what it asked its own people is its own affair.
//
// The request has no slot meanwhile, and does not count as one that is about to run. It
// waits within its caller's time. Only a request that a queue keeps, or whose caller
// names no deadline, has the capability's own time once it may go on. A repetition with
// the same idempotency key waits for this one and asks nobody (see runOnce).
func (c *call) approve() *rpc.Error {
	if c.ask == nil {
		return nil
	}
	// A person is asked only about a request that could be served.
	if err := c.validateRequest(); err != nil {
		return err
	}
	if err := c.inbox.requests.ask(c); err != nil {
		return err
	}
	until := c.extendDeadline()
	approval, err := c.inbox.cfg.Checks.Approver.Approve(&c.ctx, rpc.ApprovalRequest{
		Start: c.start, Role: rpc.RoleCallee, Peer: c.request.From, Proven: c.proven, Capability: c.capability.Name, Payload: c.request.Payload,
		Rule: c.ask.Rule, TenantID: c.request.TenantID, CorrelationID: c.request.CorrelationID, SessionID: c.session(), TraceID: trace.ID(c.trace),
	})
	c.inbox.requests.asked(c)
	switch late := errors.Is(c.ctx.Err(), context.DeadlineExceeded); {
	case c.ctx.Err() != nil && !late:
		return c.interruptedUnrun("")
	case err != nil && !late:
		return rpc.NewError(rpc.CodeAuditFailed, err, "the call of %s needs approval, and the decision could not be recorded", c.capability.Name).Explain()
	case approval.Granted:
		c.resumeDeadline(until)
		return nil
	case late || approval.By == "":
		return rpc.NewError(rpc.CodeDenied, errNobodyDecided, "permission denied: %s of %s needs approval, and nobody gave it in time", c.capability.Name, c.inbox.cfg.Self)
	}
	// Who it was is for the records of this end: a caller of another house need not know.
	return rpc.NewError(rpc.CodeDenied, nil, "permission denied: %s refused to approve %s: %s",
		c.inbox.cfg.Self, c.capability.Name, truncate.String(approval.Reason, wire.MaxText))
}

// extendDeadline gives a request for which nobody waits at the other end the time that a
// person may take. It returns when the request is of no use any more.
func (c *call) extendDeadline() time.Time {
	latest := time.Now().Add(maxApprovalWait)
	switch {
	case c.request.Deadline == 0:
	case c.delivery != nil: // its caller comes back for the answer
		if kept := time.UnixMilli(c.request.Deadline); kept.Before(latest) {
			latest = kept
		}
	default:
		return c.deadline
	}
	c.ctx.restart(latest)
	return latest
}

// resumeDeadline gives an approved request the capability's own time, if it waited
// beyond that.
func (c *call) resumeDeadline(latest time.Time) {
	if latest.Equal(c.deadline) {
		return
	}
	c.deadline = time.Now().Add(rpc.EffectiveTimeout(0, c.capability.Timeout))
	if latest.Before(c.deadline) {
		c.deadline = latest
	}
	c.ctx.restart(c.deadline)
}

// ask takes a call out of the count of those that run or are about to, until asked. It
// refuses one that has no time to wait, and those from a queue that would keep it from
// handing over others.
func (r *requests) ask(c *call) *rpc.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return wire.Draining(c.inbox.cfg.Self)
	case c.delivery != nil && r.askingQueued >= max(1, r.limits.MaxInFlight/2):
		return check.Busy(time.Second, nil, "%s waits for the approval of %d requests from its queue already", c.inbox.cfg.Self, r.askingQueued)
	}
	c.asking = true
	r.asking++
	if c.delivery != nil {
		r.askingQueued++
	}
	c.queue.asking++
	c.line.asking++
	c.queue.accepted--
	return nil
}

// asked counts a call again.
func (r *requests) asked(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.asking = false
	r.asking--
	if c.delivery != nil {
		r.askingQueued--
	}
	c.queue.asking--
	c.line.asking--
	c.queue.accepted++
}

// stopAsking ends the waits for persons: another replica can ask, and a shutdown must not
// wait for people. It does so under the lock of asked: a request that may go on meanwhile
// is one that the shutdown waits for.
func (r *requests) stopAsking() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		if c.asking {
			c.ctx.end(ErrShutdown)
		}
	}
}
