package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

const (
	// maxApprovals bounds the calls of each role that wait for a person. A person cannot
	// look at more, and each holds its payload in memory.
	maxApprovals = 256
	// maxApprovalsPerPeer bounds those of one caller at the callee, so that one that asks
	// over and over keeps nobody else's calls from a person.
	maxApprovalsPerPeer = 64
	// approvalRecordTimeout bounds the record of a decision.
	approvalRecordTimeout = 10 * time.Second
	// approvalRecordsPerSecond bounds the records of what others than approvers can cause
	// as often as they like.
	approvalRecordsPerSecond = 5
	// approvalLinesPerSecond bounds the lines of the log about calls that wait.
	approvalLinesPerSecond = 100
)

// approvals are the calls that wait for a person's decision at one agent: those that it
// makes, and those that it serves. A call leaves the table exactly once, by remove. The
// goroutine that removes it decides it, be it for a person, the end of its time, or the
// end of its caller's patience.
type approvals struct {
	self    envelope.Address
	audit   auditor
	timeout atomic.Int64 // a time.Duration; a reload changes it for calls that begin to wait
	// approvers may decide, by their signatures. A reload swaps them for calls that wait,
	// too; while there are none, whoever has the control socket may.
	approvers atomic.Pointer[[]approval.Approver]
	log       *slog.Logger

	undecided policy.Sampler // which outcomes that a caller can cause get records
	lines     policy.Sampler // which waits that a caller can cause get a line in the log
	refused   policy.Sampler // which refused decisions do

	mu      sync.Mutex
	waiting map[string]*waitingCall // by id; guarded by mu
}

// A waitingCall is one of them.
type waitingCall struct {
	id       string
	nonce    string // in the statement that is signed
	request  rpc.ApprovalRequest
	payload  envelope.PayloadDigest
	until    time.Time         // in whole milliseconds, as in the statement
	decision chan rpc.Approval // has room for the one decision, so Decide never blocks
}

var (
	_ rpc.Approver      = (*approvals)(nil)
	_ control.Approvals = (*approvals)(nil)
)

func newApprovals(self envelope.Address, a auditor, timeout time.Duration, approvers []approval.Approver, log *slog.Logger) *approvals {
	all := &approvals{self: self, audit: a, log: log, waiting: map[string]*waitingCall{}}
	all.undecided.PerSecond, all.refused.PerSecond, all.lines.PerSecond = approvalRecordsPerSecond, approvalRecordsPerSecond, approvalLinesPerSecond
	all.configure(timeout, approvers)
	return all
}

// configure puts what the files say in force.
func (a *approvals) configure(timeout time.Duration, approvers []approval.Approver) {
	a.timeout.Store(int64(timeout))
	a.approvers.Store(&approvers)
}

// Approve implements [rpc.Approver]. It blocks until somebody decides, the
// approval's time is up, or ctx ends. Every outcome is recorded before it returns.
func (a *approvals) Approve(ctx context.Context, r rpc.ApprovalRequest) (rpc.Approval, error) {
	call, err := a.newCall(ctx, r)
	if err != nil {
		return rpc.Approval{}, err
	}
	wait := time.NewTimer(time.Duration(a.timeout.Load()))
	defer wait.Stop()
	if !a.add(call) {
		// A full table denies, and the denial is recorded like any other.
		return rpc.Approval{}, a.recordUndecided(ctx, call, "overflow")
	}
	if take, _ := a.lines.Take(time.Now()); take {
		a.log.Warn("a call waits for approval", "id", call.id, "role", string(r.Role), "peer", r.Peer, "capability", r.Capability, "origin", r.Origin, "correlationId", r.CorrelationID, "traceId", r.TraceID, "until", call.until)
	}
	if r.OnWait != nil {
		r.OnWait(rpc.ApprovalWait{ID: call.id, Until: call.until})
	}
	select {
	case decision := <-call.decision:
		return decision, nil
	case <-wait.C:
		return a.endUndecided(ctx, call, "expire")
	case <-ctx.Done():
		outcome := "cancel"
		// The callee's context ends with the request's time; at the caller that is the
		// caller giving up.
		if r.Role == rpc.RoleCallee && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			outcome = "expire"
		}
		return a.endUndecided(ctx, call, outcome)
	}
}

// newCall gives a call what names its wait.
func (a *approvals) newCall(ctx context.Context, r rpc.ApprovalRequest) (*waitingCall, error) {
	id, err := uuid.NewV7() // sorts by the time at which the wait began
	if err != nil {
		return nil, fmt.Errorf("approval: %w", err)
	}
	until := time.Now().Add(time.Duration(a.timeout.Load()))
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	return &waitingCall{
		id: id.String(), nonce: rand.Text(), request: r, payload: envelope.DigestPayload(r.Payload),
		until: until.Truncate(time.Millisecond), decision: make(chan rpc.Approval, 1),
	}, nil
}

// add puts a call into the table. It returns false if there is no room for it.
func (a *approvals) add(call *waitingCall) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	all, ofPeer := 0, 0
	for _, other := range a.waiting {
		if other.request.Role != call.request.Role {
			continue
		}
		all++
		// A stranger that uses the caller's name without a proof takes none of its room.
		if other.request.Peer == call.request.Peer && other.request.Proven == call.request.Proven {
			ofPeer++
		}
	}
	if all >= maxApprovals || call.request.Role == rpc.RoleCallee && ofPeer >= maxApprovalsPerPeer {
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

// find returns a call that waits, or nil.
func (a *approvals) find(id string) *waitingCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting[id]
}

// endUndecided ends a wait without a person's decision.
func (a *approvals) endUndecided(ctx context.Context, call *waitingCall, outcome string) (rpc.Approval, error) {
	if a.remove(call.id) == nil {
		// Decide has removed it and is writing the record: its decision counts.
		return <-call.decision, nil
	}
	return rpc.Approval{}, a.recordUndecided(ctx, call, outcome)
}

// decider is who has taken a decision, or nil where nobody has: then the context is that
// of the call, and its actor whoever made that.
func decider(ctx context.Context, outcome string) *auditchain.Actor {
	if outcome == "approve" || outcome == "deny" || outcome == "refused" {
		return auditchain.ActorOf(ctx)
	}
	return nil
}

// Waiting implements [control.Approvals].
func (a *approvals) Waiting() []control.Approval {
	approvers := *a.approvers.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]control.Approval, 0, len(a.waiting))
	for _, call := range a.waiting {
		shown := a.show(call)
		for _, who := range approvers {
			shown.Signers = append(shown.Signers, control.Signer{Name: who.Name, Key: who.Fingerprint()})
		}
		all = append(all, shown)
	}
	slices.SortFunc(all, func(x, y control.Approval) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID))
	})
	return all
}

// show is a waiting call as the control API shows it, but for who may decide.
func (a *approvals) show(call *waitingCall) control.Approval {
	r := call.request
	shown := control.Approval{
		ID: call.id, Role: r.Role, Caller: a.self, Callee: r.Peer, Proven: r.Proven, Peer: r.Peer, Capability: r.Capability,
		CorrelationID: r.CorrelationID, SessionID: r.SessionID, TenantID: r.TenantID, Origin: r.Origin, Rule: r.Rule.String(),
		Since: r.Start, Until: call.until, Nonce: call.nonce, PayloadSHA256: call.payload.String(), Payload: slices.Clone(r.Payload),
	}
	if r.Role == rpc.RoleCallee {
		shown.Caller, shown.Callee = r.Peer, a.self
	}
	return shown
}
