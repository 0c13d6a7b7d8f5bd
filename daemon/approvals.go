package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/caller"
)

// maxApprovals bounds the calls that wait for a person.
const maxApprovals = 256

// approvals are the calls of one agent that wait for a person's decision. A call
// is taken out by whoever decides: a person, or the end of its time.
type approvals struct {
	audit   auditor
	timeout time.Duration
	log     *slog.Logger

	mu      sync.Mutex
	waiting map[string]*waitingCall // by id; guarded by mu
}

// A waitingCall is one of them.
type waitingCall struct {
	id      string
	request caller.ApprovalRequest
	until   time.Time
	decided chan caller.Approval // holds one
}

var (
	_ caller.Approver   = (*approvals)(nil)
	_ control.Approvals = (*approvals)(nil)
)

func newApprovals(a auditor, timeout time.Duration, log *slog.Logger) *approvals {
	return &approvals{audit: a, timeout: timeout, log: log, waiting: map[string]*waitingCall{}}
}

// An approvalBody is a record of kind approval.
type approvalBody struct {
	ID            string           `json:"approvalId"`
	Peer          envelope.Address `json:"peerId"`
	Capability    string           `json:"capabilityName"`
	CorrelationID string           `json:"correlationId"`
	SessionID     string           `json:"sessionId,omitempty"`
	Rule          string           `json:"rule"`
	// Decision is approve, deny, expire (nobody decided in time), cancel (the
	// caller gave up) or overflow (too many calls waited already).
	Decision string `json:"decision"`
	Approver string `json:"approver,omitempty"`
	Reason   string `json:"reason,omitempty"`
	WaitedMs int64  `json:"waitedMs"`
}

// Approve implements [caller.Approver].
func (a *approvals) Approve(ctx context.Context, r caller.ApprovalRequest) (caller.Approval, error) {
	call, err := a.add(r)
	if err != nil {
		return caller.Approval{}, err
	}
	if call == nil {
		return caller.Approval{}, a.record(ctx, &waitingCall{request: r}, "overflow", caller.Approval{})
	}
	a.log.Warn("a call waits for approval", "id", call.id, "peer", r.Peer, "capability", r.Capability, "until", call.until)
	timer := time.NewTimer(time.Until(call.until))
	defer timer.Stop()
	select {
	case decision := <-call.decided:
		return decision, nil
	case <-timer.C:
		return a.giveUp(ctx, call, "expire")
	case <-ctx.Done():
		return a.giveUp(ctx, call, "cancel")
	}
}

// add lets a call wait; nil means that there is no room.
func (a *approvals) add(r caller.ApprovalRequest) (*waitingCall, error) {
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("approval: %w", err)
	}
	call := &waitingCall{
		id: hex.EncodeToString(id[:]), request: r, until: time.Now().Add(a.timeout), decided: make(chan caller.Approval, 1),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= maxApprovals || a.waiting[call.id] != nil {
		return nil, nil // documented: no room is no error
	}
	a.waiting[call.id] = call
	return call, nil
}

// take takes a call out, so that it is decided once.
func (a *approvals) take(id string) *waitingCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	call := a.waiting[id]
	delete(a.waiting, id)
	return call
}

// giveUp ends a wait without a decision.
func (a *approvals) giveUp(ctx context.Context, call *waitingCall, how string) (caller.Approval, error) {
	if a.take(call.id) == nil { // somebody decides at this moment
		return <-call.decided, nil
	}
	return caller.Approval{}, a.record(ctx, call, how, caller.Approval{})
}

func (a *approvals) record(ctx context.Context, call *waitingCall, decision string, d caller.Approval) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	r := call.request
	capability := r.Capability
	if len(capability) > maxRecordedName {
		capability = capability[:maxRecordedName]
	}
	return a.audit.append(ctx, auditchain.KindApproval, r.TenantID, approvalBody{
		ID: call.id, Peer: r.Peer, Capability: capability, CorrelationID: r.CorrelationID, SessionID: r.SessionID,
		Rule: r.Rule.String(), Decision: decision, Approver: d.By, Reason: d.Reason, WaitedMs: time.Since(r.Start).Milliseconds(),
	})
}

// Waiting implements [control.Approvals].
func (a *approvals) Waiting() []control.Approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]control.Approval, 0, len(a.waiting))
	for _, call := range a.waiting {
		r := call.request
		all = append(all, control.Approval{
			ID: call.id, Peer: r.Peer, Capability: r.Capability, CorrelationID: r.CorrelationID, SessionID: r.SessionID,
			Rule: r.Rule.String(), Since: r.Start, Until: call.until, Payload: slices.Clone(r.Payload),
		})
	}
	slices.SortFunc(all, func(x, y control.Approval) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID))
	})
	return all
}

// Decide implements [control.Approvals]. The call goes on only once the decision
// is on the disk; without that it is denied.
func (a *approvals) Decide(ctx context.Context, id string, d caller.Approval) error {
	call := a.take(id)
	if call == nil {
		return &control.NoApprovalError{ID: id}
	}
	decision := "deny"
	if d.Granted {
		decision = "approve"
	}
	err := a.record(ctx, call, decision, d)
	if err != nil {
		d = caller.Approval{By: d.By, Reason: "the decision could not be recorded"}
	}
	call.decided <- d
	return err
}
