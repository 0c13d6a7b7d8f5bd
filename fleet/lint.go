package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/spelling"
)

// A Severity determines whether a finding makes validation fail.
type Severity string

// An error makes validation fail. A warning is about something that will not
// work, but need not be wrong everywhere: a program may be missing on this machine
// only. A note says what is taken as intended.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// rank orders severities, the worst first.
func (s Severity) rank() int {
	return slices.Index([]Severity{SeverityError, SeverityWarning, SeverityNote}, s)
}

// A Code names a rule. Codes are stable.
type Code string

// The rules.
const (
	// ConfigInvalid is a fault of a file: the fleet does not load.
	ConfigInvalid Code = "config.invalid"
	// PeerDangling is a peer that is no member, pins no capabilities and is not
	// external (an id with a dot is): a note, or a warning where the id looks like
	// a misspelt member's.
	PeerDangling Code = "peer.dangling"
	// PeerClientOnly is a peer that offers no capabilities.
	PeerClientOnly Code = "peer.client-only"
	// CapabilityDuplicate is one capability name that several members offer.
	CapabilityDuplicate Code = "capability.duplicate"
	// DeployTargetMissing is a member deployed to a target that is not declared.
	DeployTargetMissing Code = "deploy.target.missing"
	// SkillMissing is a capability whose skill agent.yaml does not declare.
	SkillMissing Code = "skill.missing"
	// OverrideUnknown is an environment's override for no member.
	OverrideUnknown Code = "override.unknown"
	// RefMissing is a file that an environment names and that is not there.
	RefMissing Code = "ref.missing"
)

// A Finding is one problem in a fleet's files.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	// Message is complete without the position.
	Message string `json:"message"`
	// Hint is what to do about it; it may be empty.
	Hint string `json:"hint,omitempty"`
	// Position is the place in a file.
	Position Position `json:"position"`
}

// Findings are the results of a validation, errors first.
type Findings []Finding

// Sort puts the worst first, and leaves the order within one severity alone.
func (f Findings) Sort() {
	slices.SortStableFunc(f, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

// Count returns the number of findings of one severity.
func (f Findings) Count(s Severity) int {
	n := 0
	for _, x := range f {
		if x.Severity == s {
			n++
		}
	}
	return n
}

// Failed reports whether there is an error among the findings.
func (f Findings) Failed() bool {
	return slices.ContainsFunc(f, func(x Finding) bool { return x.Severity == SeverityError })
}

// WriteText writes the findings for people, one a line. The last line says
// whether the fleet validates.
func (f Findings) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, x := range f {
		mark := map[Severity]string{SeverityError: "✗", SeverityWarning: "!", SeverityNote: "·"}[x.Severity]
		fault := x.Position.Fault(x.Message, x.Hint)
		fmt.Fprintf(&b, "%s [%s] %s\n", mark, x.Code, fault)
	}
	switch warnings := f.Count(SeverityWarning); {
	case f.Failed():
	case warnings > 0:
		fmt.Fprintf(&b, "✓ fleet validates; warnings: %d.\n", warnings)
	default:
		b.WriteString("✓ fleet validates clean.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Validate loads the fleet in root and lints it. Faults of its files are
// findings too. The error is for everything else, such as a directory without
// a fleet.
func Validate(root string, opts LoadOptions) (Findings, error) {
	f, err := Load(root, opts)
	var invalid *LoadError
	if errors.As(err, &invalid) {
		findings := make(Findings, 0, len(invalid.Faults))
		for _, fault := range invalid.Faults {
			findings = append(findings, Finding{Severity: SeverityError, Code: ConfigInvalid, Message: fault.Message, Hint: fault.Hint, Position: fault.Position})
		}
		return findings, nil
	}
	if err != nil {
		return nil, err
	}
	return f.Lint(), nil
}

// Lint reports names in a fleet's files that lead nowhere: errors first, and in
// declared order otherwise. Package internal/fleetlint adds what cannot work although
// every name is right.
func (f *Fleet) Lint() Findings {
	findings := Findings{}
	findings = append(findings, f.lintPeers()...)
	findings = append(findings, f.lintDuplicates()...)
	findings = append(findings, f.lintDeploy()...)
	findings = append(findings, f.lintSkills()...)
	findings = append(findings, f.lintOverrides()...)
	findings = append(findings, f.lintRefs()...)
	findings.Sort()
	return findings
}

// external reports whether a peer is outside the fleet on purpose: its
// capabilities are pinned, or its id has a dot, as the ids of other owners'
// agents do.
func (p *Peer) external() bool {
	return !p.InFleet && (p.Pinned || strings.Contains(p.Address.ID(), "."))
}

// describesCaller reports whether an entry says something of a peer that calls: it is of
// use, also if nobody can call that peer.
func (p *Peer) describesCaller() bool {
	return p.Tenants != nil || p.ReplyTopics != nil || p.Auth != nil
}

// lintPeers checks each entry of each peers file once. Members share files,
// so without the check for repeated positions an entry would be reported once
// per member.
func (f *Fleet) lintPeers() Findings {
	var findings Findings
	seen := make(map[Position]bool)
	for _, m := range f.Members {
		for _, p := range m.Peers {
			if seen[p.Position] || p.external() {
				continue
			}
			seen[p.Position] = true
			switch {
			case !p.InFleet:
				findings = append(findings, f.foreign(p))
			case p.Document == nil && !p.describesCaller():
				findings = append(findings, Finding{
					Severity: SeverityWarning, Code: PeerClientOnly, Position: p.Position,
					Message: fmt.Sprintf("the peer %s offers no capabilities", p.Address),
				})
			}
		}
	}
	return findings
}

// foreign makes the finding for a peer that is no member and has no capabilities
// file. Such calls work, without a check of their payloads.
func (f *Fleet) foreign(p *Peer) Finding {
	ids := make([]string, len(f.Members))
	for i, m := range f.Members {
		ids[i] = m.ID
	}
	finding := Finding{
		Severity: SeverityNote, Code: PeerDangling, Position: p.Position,
		Message: fmt.Sprintf("the peer %s is no agent of this fleet, and has no capabilities file: calls to it are not checked", p.Address),
		Hint:    "name its file with the key capabilities",
	}
	if near := spelling.DidYouMean(p.Address.ID(), ids); near != "" {
		finding.Severity, finding.Hint = SeverityWarning, near
	}
	return finding
}

// lintDuplicates reports the second and later members that offer a capability
// of one name. Calls name the agent too, so this works, but it is often a
// copied file that was not edited.
func (f *Fleet) lintDuplicates() Findings {
	var findings Findings
	first := make(map[string]*Member)
	for _, m := range f.Members {
		if m.ClientOnly() {
			continue
		}
		for _, c := range m.Capabilities.Capabilities {
			owner, dup := first[c.Name]
			if !dup {
				first[c.Name] = m
				continue
			}
			findings = append(findings, Finding{
				Severity: SeverityWarning, Code: CapabilityDuplicate, Position: c.Position,
				Message: fmt.Sprintf("the capability %q is offered by %s and by %s", c.Name, owner.Address, m.Address),
			})
		}
	}
	return findings
}

// lintDeploy reports deploy targets that are not declared. The fleet runs
// without them, but cannot be deployed.
func (f *Fleet) lintDeploy() Findings {
	var findings Findings
	for _, m := range f.Members {
		if m.DeployTo == nil {
			continue
		}
		if _, ok := f.Deploy.Targets[m.DeployTo.Target]; ok {
			continue
		}
		known := make([]string, 0, len(f.Deploy.Targets))
		for name := range f.Deploy.Targets {
			known = append(known, name)
		}
		slices.Sort(known)
		findings = append(findings, Finding{
			Severity: SeverityError, Code: DeployTargetMissing, Position: m.DeployTo.Position,
			Message: fmt.Sprintf("agent %q deploys to %q, which is not declared in deploy.targets", m.ID, m.DeployTo.Target),
			Hint:    spelling.DidYouMean(m.DeployTo.Target, known),
		})
	}
	return findings
}

// lintSkills reports capabilities without a skill behind them.
func (f *Fleet) lintSkills() Findings {
	var findings Findings
	for _, m := range f.Members {
		if m.ClientOnly() {
			continue
		}
		names := make([]string, 0, len(m.Agent.Skills))
		for _, s := range m.Agent.Skills {
			names = append(names, s.Name)
		}
		for _, c := range m.Capabilities.Capabilities {
			if _, ok := m.Agent.Skill(c.Skill); !ok {
				findings = append(findings, skillMissing(m, c, names))
			}
		}
	}
	return findings
}

// skillMissing makes a finding for a capability without a skill. It is an
// error if agent.yaml declares any runner. If it declares none it is a
// warning, because the skills may be Go functions or belong to the reference
// runtime.
func skillMissing(m *Member, c *capability.Capability, names []string) Finding {
	severity := SeverityWarning
	if len(names) > 0 {
		severity = SeverityError
	}
	return Finding{
		Severity: severity, Code: SkillMissing, Position: c.Position,
		Message: fmt.Sprintf("the capability %q runs the skill %q, which agent.yaml of %q does not declare", c.Name, c.Skill, m.ID),
		Hint:    spelling.DidYouMean(c.Skill, names),
	}
}

// lintOverrides reports overrides for members that do not exist.
func (f *Fleet) lintOverrides() Findings {
	var findings Findings
	ids := make([]string, len(f.Members))
	for i, m := range f.Members {
		ids[i] = m.ID
	}
	for _, env := range f.Environments {
		for _, id := range sortedKeys(env.Overrides) {
			if !slices.Contains(ids, id) {
				findings = append(findings, Finding{
					Severity: SeverityWarning, Code: OverrideUnknown, Position: env.Position,
					Message: fmt.Sprintf("the environment %q overrides agent %q, which the fleet does not have", env.Name, id),
					Hint:    spelling.DidYouMean(id, ids),
				})
			}
		}
	}
	return findings
}
