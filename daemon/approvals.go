package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc/caller"
)

const (
	// maxApprovals bounds the calls that wait for a person. A person cannot look at
	// more, and each holds its payload in memory.
	maxApprovals = 256
	// approvalRecordTimeout bounds the record of a decision.
	approvalRecordTimeout = 10 * time.Second
)

// approvals are the calls of one agent that wait for a person's decision. A call
// leaves the table exactly once, by remove. The goroutine that removes it decides
// it, be it for a person, the end of its time, or the end of its caller's patience.
type approvals struct {
	audit   auditor
	timeout atomic.Int64 // a time.Duration; a reload changes it for calls that begin to wait
	log     *slog.Logger

	mu      sync.Mutex
	waiting map[string]*waitingCall // by id; guarded by mu
}

// A waitingCall is one of them.
type waitingCall struct {
	id       string
	request  caller.ApprovalRequest
	until    time.Time
	decision chan caller.Approval // has room for the one decision, so Decide never blocks
}

var (
	_ caller.Approver   = (*approvals)(nil)
	_ control.Approvals = (*approvals)(nil)
)

func newApprovals(a auditor, timeout time.Duration, log *slog.Logger) *approvals {
	all := &approvals{audit: a, log: log, waiting: map[string]*waitingCall{}}
	all.setTimeout(timeout)
	return all
}

func (a *approvals) setTimeout(timeout time.Duration) { a.timeout.Store(int64(timeout)) }

// Approve implements [caller.Approver]. It blocks until somebody decides, the
// approval's time is up, or ctx ends. Every outcome is recorded before it returns.
func (a *approvals) Approve(ctx context.Context, r caller.ApprovalRequest) (caller.Approval, error) {
	id, err := uuid.NewV7() // sorts by the time at which the wait began
	if err != nil {
		return caller.Approval{}, fmt.Errorf("approval: %w", err)
	}
	call := &waitingCall{id: id.String(), request: r, until: time.Now().Add(time.Duration(a.timeout.Load())), decision: make(chan caller.Approval, 1)}
	if !a.add(call) {
		// A full table denies, and the denial is recorded like any other.
		return caller.Approval{}, a.record(ctx, call, "overflow", caller.Approval{})
	}
	a.log.Warn("a call waits for approval", "id", call.id, "peer", r.Peer, "capability", r.Capability, "correlationId", r.CorrelationID, "traceId", r.TraceID, "until", call.until)
	timer := time.NewTimer(time.Until(call.until))
	defer timer.Stop()
	select {
	case decision := <-call.decision:
		return decision, nil
	case <-timer.C:
		return a.endUndecided(ctx, call, "expire")
	case <-ctx.Done():
		return a.endUndecided(ctx, call, "cancel")
	}
}

// add puts a call into the table. It returns false if the table is full.
func (a *approvals) add(call *waitingCall) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= maxApprovals {
		return false
	}
	a.waiting[call.id] = call
	return true
}

// remove takes a call out of the table. It returns nil if the call has left already.
func (a *approvals) remove(id string) *waitingCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	call := a.waiting[id]
	delete(a.waiting, id)
	return call
}

// endUndecided ends a wait without a person's decision.
func (a *approvals) endUndecided(ctx context.Context, call *waitingCall, outcome string) (caller.Approval, error) {
	if a.remove(call.id) == nil {
		// Decide has removed it and is writing the record: its decision counts.
		return <-call.decision, nil
	}
	return caller.Approval{}, a.record(ctx, call, outcome, caller.Approval{})
}

// record writes how a wait ended. It does so even if ctx has ended: a caller that
// gives up must not escape the log.
func (a *approvals) record(ctx context.Context, call *waitingCall, outcome string, d caller.Approval) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), approvalRecordTimeout)
	defer cancel()
	r := call.request
	return a.audit.append(ctx, auditchain.KindApproval, r.TenantID, approvalBody{
		ID: call.id, Peer: r.Peer, Capability: truncateName(r.Capability), CorrelationID: r.CorrelationID, TraceID: r.TraceID, SessionID: r.SessionID,
		Rule: r.Rule.String(), Decision: outcome, Approver: d.By, Reason: d.Reason, WaitedMs: time.Since(r.Start).Milliseconds(),
		Actor: decider(ctx, outcome),
	})
}

// decider is who has taken a decision, or nil where nobody has: then the context is that
// of the call, and its actor whoever made that.
func decider(ctx context.Context, outcome string) *auditchain.Actor {
	if outcome == "approve" || outcome == "deny" {
		return auditchain.ActorOf(ctx)
	}
	return nil
}

// Waiting implements [control.Approvals].
func (a *approvals) Waiting() []control.Approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]control.Approval, 0, len(a.waiting))
	for _, call := range a.waiting {
		r := call.request
		all = append(all, control.Approval{
			ID: call.id, Peer: r.Peer, Capability: r.Capability, CorrelationID: r.CorrelationID, SessionID: r.SessionID, TenantID: r.TenantID,
			Rule: r.Rule.String(), Since: r.Start, Until: call.until, Payload: slices.Clone(r.Payload),
		})
	}
	slices.SortFunc(all, func(x, y control.Approval) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID))
	})
	return all
}

// Decide implements [control.Approvals]. The call proceeds only once the decision is
// on the disk; if that fails the call is denied.
func (a *approvals) Decide(ctx context.Context, id string, d caller.Approval) error {
	// Removed first, so that a second person, or the timer, cannot decide the same
	// call while the record is being written.
	call := a.remove(id)
	if call == nil {
		return &control.NoApprovalError{ID: id}
	}
	outcome := "deny"
	if d.Granted {
		outcome = "approve"
	}
	err := a.record(ctx, call, outcome, d)
	if err != nil {
		d = caller.Approval{By: d.By, Reason: "the decision could not be recorded"}
	}
	call.decision <- d
	return err
}
