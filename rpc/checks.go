package rpc

import (
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

// An Authorizer decides whether a call may be made or served. It is on the path of
// every call, at both ends, and safe for concurrent use.
type Authorizer interface {
	// Decide judges a call to a capability. peer is the agent at the other end: the
	// callee at the caller's end, the caller at the callee's.
	Decide(peer envelope.Address, capability string) policy.Decision
}

// An OriginAuthorizer decides about calls that somebody else has asked the agent for, at
// the caller's end. It must allow no more than the [Authorizer] does.
type OriginAuthorizer interface {
	// DecideFor judges a call to a capability of peer; origin is that of its [Request].
	DecideFor(origin string, peer envelope.Address, capability string) policy.Decision
}

// A Limiter counts calls over time. It is on the path of every call, at both ends,
// and safe for concurrent use; a [policy.RateLimiter] is one.
type Limiter interface {
	// Take counts a call to c. peer is the agent at the other end, as for an
	// [Authorizer]; tenant is the call's, or "".
	Take(peer envelope.Address, tenant string, c *capability.Capability, now time.Time) policy.Quota
}

// A TenantGuard decides for which tenants requests are served. It is on the path of
// every request, and safe for concurrent use; [policy.TenantRules] are one.
type TenantGuard interface {
	// Decide returns nil for a request that may be served, and otherwise why not, for
	// the caller to read. tenant is "" for a request that names none; proven reports
	// whether the request proves that it is from's.
	Decide(from envelope.Address, proven bool, tenant string) error
}

// An Identity proves this agent's messages to others and checks theirs. It is on
// the path of every message, and safe for concurrent use; an [identity.Keyring] is
// one.
type Identity interface {
	envelope.Signer
	// Verify checks that e comes from the agent that it names, if it must prove
	// that. proven is false for a message that is accepted without a proof. The
	// error is an [*identity.Error].
	Verify(e *envelope.Envelope) (proven bool, err error)
	// Proves reports whether what a peer sends must carry a proof.
	Proves(peer envelope.Address) bool
}
