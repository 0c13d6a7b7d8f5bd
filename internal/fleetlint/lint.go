package fleetlint

import (
	"fmt"
	"slices"

	"github.com/agentd/agentd/fleet"
)

// The rules, beside those of package fleet. Their names are stable.
const (
	// CallNone: no agent of the fleet, or a client of it, can call anybody.
	CallNone fleet.Code = "call.none"
	// PermissionMalformed: a pattern cannot be read, and the agent does not start.
	PermissionMalformed fleet.Code = "permission.malformed"
	// PermissionUnmatched: a rule of agent.yaml permits no call that could be made.
	PermissionUnmatched fleet.Code = "permission.unmatched"
	// ScopeUngranted: a capability needs a scope that its agent does not have, and
	// every call to it is denied.
	ScopeUngranted fleet.Code = "scope.ungranted"
	// AuthUnsupported: agentd cannot check this kind of identity, and the agent does
	// not start.
	AuthUnsupported fleet.Code = "auth.unsupported"
	// TenantUnproven: a caller's tenants are listed, and it proves nothing.
	TenantUnproven fleet.Code = "tenant.unproven"
	// PeersUnused: no agent reads a peers file.
	PeersUnused fleet.Code = "peers.unused"
	// TransportUnsupported: agentd does not speak a kind of transport.
	TransportUnsupported fleet.Code = "transport.unsupported"
	// TransportSubject: a subject cannot be subscribed, or nobody can publish to it.
	TransportSubject fleet.Code = "transport.subject"
	// TransportMismatch: a peers file sends requests where their agent does not take
	// any.
	TransportMismatch fleet.Code = "transport.mismatch"
	// TransportShared: two agents take requests at one subject.
	TransportShared fleet.Code = "transport.shared"
	// TransportReplies: a peer may have answers sent to where agents take requests.
	TransportReplies fleet.Code = "transport.replies"
	// TransportLacks: a capability needs a broker that the agent is not on.
	TransportLacks fleet.Code = "transport.lacks"
	// SkillProgram: the program of a skill, its script or its folder is not there, or a file
	// for the TLS of its web service.
	SkillProgram fleet.Code = "skill.program"
	// CapabilityRefused: what an agent lists under capabilities of agent.yaml cannot be
	// resolved, and the agent does not start.
	CapabilityRefused fleet.Code = "capability.refused"
	// ActionAdvice: an action lacks what a good one has, such as a description.
	ActionAdvice fleet.Code = "action.advice"
	// SandboxOff is a skill that nothing holds.
	SandboxOff fleet.Code = "sandbox.off"
	// SandboxPath is a granted path that is not there.
	SandboxPath fleet.Code = "sandbox.path"
	// SandboxUser is a user that is not on this host: the agent does not start here.
	SandboxUser fleet.Code = "sandbox.user"
	// BoundsContradict: two bounds cannot hold together, or one has no effect.
	BoundsContradict fleet.Code = "bounds.contradict"
	// RetryUnsafe: a retry policy without effect, since repeating the call may do
	// harm.
	RetryUnsafe fleet.Code = "retry.unsafe"
	// VersionUnenforced: a minSchemaVersion that nothing holds the peer to.
	VersionUnenforced fleet.Code = "version.unenforced"
	// VersionUnmet: a capability is older than a caller accepts, and every call to it
	// is refused.
	VersionUnmet fleet.Code = "version.unmet"
	// ObjectiveUnmatched: an objective is for a capability that the agent does not offer.
	ObjectiveUnmatched fleet.Code = "objective.unmatched"
	// KeyIgnored: a key that agentd does not act on.
	KeyIgnored fleet.Code = "key.ignored"
	// KeyDeprecated: a form of a key that has a newer one.
	KeyDeprecated fleet.Code = "key.deprecated"
)

// Validate is [fleet.Validate], with the rules of this package for a fleet that
// loads.
func Validate(root string, opts fleet.LoadOptions) (fleet.Findings, error) {
	findings, err := fleet.Validate(root, opts)
	if err != nil || slices.ContainsFunc(findings, func(f fleet.Finding) bool { return f.Code == fleet.ConfigInvalid }) {
		return findings, err
	}
	f, err := fleet.Load(root, opts)
	if err != nil {
		return nil, err
	}
	findings = append(findings, Check(f)...)
	findings.Sort()
	return findings, nil
}

// Check applies the rules of this package: errors first, and in declared order
// otherwise.
func Check(f *fleet.Fleet) fleet.Findings {
	c := &checker{fleet: f, reported: map[finding]bool{}}
	c.calls()
	c.identities()
	c.tenants()
	c.peersFiles()
	c.transports()
	c.skills()
	c.uses()
	c.actions()
	c.bounds()
	c.versions()
	c.objectives()
	c.ignored()
	c.found.Sort()
	return c.found
}

// A finding identifies what was reported: members share peers files, and would have
// each fault of them reported again.
type finding struct {
	code     fleet.Code
	position fleet.Position
	message  string
}

// A checker collects the findings of one fleet.
type checker struct {
	fleet    *fleet.Fleet
	found    fleet.Findings
	reported map[finding]bool
}

func (c *checker) add(severity fleet.Severity, code fleet.Code, at fleet.Position, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	id := finding{code, at, message}
	if c.reported[id] {
		return
	}
	c.reported[id] = true
	c.found = append(c.found, fleet.Finding{Severity: severity, Code: code, Message: message, Hint: hint, Position: at})
}

// fail reports what keeps an agent from starting.
func (c *checker) fail(code fleet.Code, at fleet.Position, hint, format string, args ...any) {
	c.add(fleet.SeverityError, code, at, hint, format, args...)
}

// warn reports what will not work.
func (c *checker) warn(code fleet.Code, at fleet.Position, hint, format string, args ...any) {
	c.add(fleet.SeverityWarning, code, at, hint, format, args...)
}

// note reports what is taken as intended.
func (c *checker) note(code fleet.Code, at fleet.Position, hint, format string, args ...any) {
	c.add(fleet.SeverityNote, code, at, hint, format, args...)
}
