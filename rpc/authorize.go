package rpc

import (
	"context"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/policy"
)

// An Authorizer decides whether a call may be made, or served. It is on the path of
// every call, at both ends, and safe for concurrent use.
type Authorizer interface {
	// Decide is about a capability and the agent at the other end: the callee
	// where a [Client] asks, the caller where an [Inbox] does.
	Decide(peer envelope.Address, capability string) policy.Decision
}

// A Role is one end of a call.
type Role string

// The two ends.
const (
	RoleCaller Role = "caller"
	RoleCallee Role = "callee"
)

// A Refusal is a call that a permission or a rate limit refused, or a message
// that did not prove its sender.
type Refusal struct {
	// Time is when this end refused it.
	Time time.Time
	// Role is this end.
	Role Role
	// Code is CodeDenied, CodeRateLimited or CodeAuthFailed.
	Code Code
	// TenantID is the call's tenant, or "".
	TenantID string
	// Capability is the name of the function.
	Capability string
	// Peer is the agent at the other end. At the callee it is as true as the
	// request's auth proves it.
	Peer envelope.Address
	// CorrelationID is the call's.
	CorrelationID string
	// SessionID is the caller's session, or "".
	SessionID string
	// Decision is the permissions', for CodeDenied.
	Decision policy.Decision
	// Quota is the rate limit's, for CodeRateLimited.
	Quota policy.Quota
	// Proof is what was wrong with the proof, for CodeAuthFailed. All the other
	// fields are then as claimed.
	Proof *identity.Error
	// Unrecorded counts the like refusals since the last record that have none of
	// their own: of the same caller and capability for CodeRateLimited, of anybody for
	// CodeAuthFailed, and for CodeDenied at the callee. At the caller every denial
	// has a record.
	Unrecorded int64
}

// A RefusalAuditor keeps the records of refused calls. It is safe for
// concurrent use.
type RefusalAuditor interface {
	// RecordRefusal returns once the record is durable.
	RecordRefusal(ctx context.Context, r Refusal) error
}

// recordRefusal writes r before anybody learns of it, even when the call has been
// cancelled meanwhile.
func recordRefusal(ctx context.Context, a RefusalAuditor, r Refusal) *Error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	r.Time = time.Now()
	if err := a.RecordRefusal(ctx, r); err != nil {
		return newError(CodeAuditFailed, err, "the call of %s is refused, and the audit record of it could not be written", cut(r.Capability, 128))
	}
	return nil
}

// authorize asks the permissions of the caller's end.
func (c *outboundCall) authorize(ctx context.Context) *Error {
	if c.client.cfg.Authorizer == nil {
		return nil
	}
	decision := c.client.cfg.Authorizer.Decide(c.peer.Address, c.request.Capability)
	if decision.Allowed {
		return nil
	}
	if decision.Reason == policy.AskRule && c.client.cfg.Approver != nil {
		return c.awaitApproval(ctx, decision)
	}
	r := c.refusal(CodeDenied)
	r.Decision = decision
	if err := recordRefusal(ctx, c.client.cfg.Refusals, r); err != nil {
		return err
	}
	return newError(CodeDenied, nil, "permission denied: %s may not call %s of %s: %s",
		c.client.cfg.Self, cut(c.request.Capability, 128), c.peer.Address, decision)
}

func (c *outboundCall) refusal(code Code) Refusal {
	return Refusal{
		Role: RoleCaller, Code: code, TenantID: c.tenant(), Capability: c.request.Capability, Peer: c.peer.Address,
		CorrelationID: c.ids.correlation, SessionID: c.session(),
	}
}

// authorize asks the permissions of the callee's end. What they are stays here:
// the caller learns that they say no.
func (c *inboundCall) authorize() *Error {
	if c.inbox.cfg.Authorizer == nil {
		return nil
	}
	decision := c.inbox.cfg.Authorizer.Decide(c.request.From, c.function.Name)
	if decision.Allowed {
		return nil
	}
	if take, unrecorded := c.inbox.denials.Take(time.Now()); take {
		r := c.refusal(CodeDenied)
		r.Decision, r.Unrecorded = decision, unrecorded
		if err := recordRefusal(&c.ctx, c.inbox.cfg.Refusals, r); err != nil {
			return err
		}
	}
	if decision.Reason == policy.ScopeMissing {
		return newError(CodeDenied, nil, "permission denied: %s is not granted what %s needs", c.inbox.cfg.Self, c.function.Name)
	}
	return newError(CodeDenied, nil, "permission denied: %s may not call %s of %s", c.request.From, c.function.Name, c.inbox.cfg.Self)
}

func (c *inboundCall) refusal(code Code) Refusal {
	return Refusal{
		Role: RoleCallee, Code: code, TenantID: c.request.TenantID, Capability: c.function.Name, Peer: c.request.From,
		CorrelationID: c.request.CorrelationID, SessionID: c.session(),
	}
}
