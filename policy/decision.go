package policy

import (
	"fmt"

	"github.com/agentd/agentd/capability"
)

// An Effect is what a rule does with the calls it matches.
type Effect string

// The effects.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	Ask   Effect = "ask" // a person decides
)

// A Rule is one entry of a configuration file that can decide about a call.
type Rule struct {
	// Effect is what the rule does when its pattern matches.
	Effect Effect `json:"effect"`
	// Pattern is the pattern as written in the file.
	Pattern string `json:"pattern"`
	// Position is the rule's place in the file.
	Position capability.Position `json:"position"`
}

// String returns the rule and its place, as in `deny "RequestAgent:**" (agent.yaml:4)`.
func (r Rule) String() string {
	if r.Position.File == "" {
		return fmt.Sprintf("%s %q", r.Effect, r.Pattern)
	}
	return fmt.Sprintf("%s %q (%s:%d)", r.Effect, r.Pattern, r.Position.File, r.Position.Line)
}

// A Decision is whether a call is allowed, and why.
type Decision struct {
	// Allowed is whether the call may be made.
	Allowed bool `json:"allowed"`
	// Rule is the rule that decided. It is zero when none matched.
	Rule Rule `json:"rule,omitzero"`
	// Reason is how the decision was reached.
	Reason Reason `json:"reason"`
}

// String returns the reason, and the rule if there is one. It contains file names:
// it is for the agent's own logs and not for its peers.
func (d Decision) String() string {
	if d.Rule == (Rule{}) {
		return d.Reason.String()
	}
	return d.Reason.String() + ": " + d.Rule.String()
}

// A Reason is how a decision was reached. The set is closed.
type Reason uint8

// The reasons.
const (
	// AllowRule: an allow rule matches, and no deny rule.
	AllowRule Reason = iota + 1
	// DenyRule: a deny rule matches.
	DenyRule
	// NoRule: there is a permissions block, and none of its rules matches.
	NoRule
	// PeerListed: there is no permissions block, and the peers file lists the agent.
	PeerListed
	// PeerNotListed: there is no permissions block, and the peers file does not.
	PeerNotListed
	// CallersOpen: the capability does not say who may call it.
	CallersOpen
	// CallerListed: one of the capability's callers matches.
	CallerListed
	// CallerNotListed: none of the capability's callers matches.
	CallerNotListed
	// ScopeMissing: the capability needs a scope that its agent has not been granted.
	ScopeMissing
	// NoCapability: the agent declares no such capability.
	NoCapability
	// AskRule: an ask rule matches, and no deny rule: a person decides.
	AskRule
	// NoClientRule: there are rules about clients of the face for MCP, and none of them
	// matches.
	NoClientRule
	// NoControlRule: the same for clients of the control API.
	NoControlRule
	// NoClientTenant: the client that asks for the call may not call for its tenant.
	NoClientTenant
)

// String returns a sentence without its full stop.
func (r Reason) String() string {
	//exhaustive:enforce
	switch r {
	case AllowRule:
		return "an allow rule matches"
	case DenyRule:
		return "a deny rule matches"
	case NoRule:
		return "no rule of the permissions block matches, and what it does not allow is denied"
	case PeerListed:
		return "the peers file lists the agent, and there is no permissions block"
	case PeerNotListed:
		return "the peers file does not list the agent, and there is no permissions block"
	case CallersOpen:
		return "the capability does not say who may call it"
	case CallerListed:
		return "the capability's callers include the agent"
	case CallerNotListed:
		return "the capability's callers do not include the agent"
	case ScopeMissing:
		return "the capability needs a scope that its agent is not granted"
	case AskRule:
		return "an ask rule matches: a person decides"
	case NoClientRule:
		return "there are rules about MCP clients, none of them matches, and what they do not allow a client is denied"
	case NoControlRule:
		return "there are rules about clients of the control API, none of them matches, and what they do not allow a client is denied"
	case NoClientTenant:
		return "the tenants of the client do not include that of the call"
	case NoCapability:
		return "the agent declares no such capability"
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// MarshalText returns what String does.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
