package compat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// A Direction selects which half of a call a comparison covers.
type Direction string

// The directions.
const (
	// Both covers requests and responses.
	Both Direction = "both"
	// Request covers what callers send.
	Request Direction = "request"
	// Response covers what callers receive.
	Response Direction = "response"
)

// The rules about capabilities as a whole. Rules about schemas are those of
// package schema, see [contain.Rule].
const (
	// RuleRemoved reports a capability that the new document lacks.
	RuleRemoved = "capability-removed"
	// RuleAdded reports a capability that the old document lacks.
	RuleAdded = "capability-added"
	// RuleDescription reports new wording. It is not breaking, but models choose
	// and fill in capabilities by their descriptions.
	RuleDescription = "description-changed"
	// RuleIdempotent reports that callers may no longer retry. It is not breaking:
	// a caller that reads the new contract stops retrying by itself.
	RuleIdempotent = "idempotent-removed"
	// RuleWords reports new wording inside of a schema, which models read as well.
	RuleWords = "schema-words-changed"
	// RuleProfile reports that the schemas are read by other rules; what that changes is
	// reported beside it.
	RuleProfile = "schema-profile-changed"
	// RuleResult reports that responses are shown to MCP clients in another form.
	RuleResult = "result-changed"
	// RuleSchema reports a published schema that package schema does not compile,
	// so nothing about it can be proven.
	RuleSchema = "schema-unsupported"
)

// A Finding is one difference.
type Finding struct {
	// Agent is the agent that offers the capability.
	Agent envelope.Address `json:"agent"`
	// Capability is the name of the function.
	Capability string `json:"capability"`
	// Side is request, response, or "" for the capability as a whole.
	Side Direction `json:"side,omitempty"`
	// Rule is a stable id: one of this package's, or a contain.Rule.
	Rule string `json:"rule"`
	// Breaking means that a caller built against the old capability may fail.
	Breaking bool `json:"breaking"`
	// Message describes the change.
	Message string `json:"message"`
	// Path is where in the payload; "*" stands for any element or unnamed member.
	Path string `json:"path"`
	// Old and New point into the two schemas (RFC 6901).
	Old string `json:"old"`
	// New is "" at the root, like Old.
	New string `json:"new"`
	// Witness is a value that shows the break, where there is one.
	Witness json.RawMessage `json:"witness,omitempty"`
}

// A Report is all differences between two documents, breaking ones first.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Breaking reports whether a caller may fail.
func (r *Report) Breaking() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Breaking })
}

// Compare lists what changed from old to new. A schema that does not compile is
// a breaking finding: without it nothing is known to be safe.
func Compare(old, new *capability.Published, direction Direction) *Report {
	return CompareWith(old, new, Options{Direction: direction})
}

// Options say how contracts are compared.
type Options struct {
	// Direction is that of [Compare]; [Lock.CheckWith] compares both.
	Direction Direction
	// Progress is called after each capability, with how many are compared and how many there are.
	// Proofs over large schemas take time. It may be nil.
	Progress func(done, total int)
}

// CompareWith is Compare with options.
func CompareWith(old, new *capability.Published, o Options) *Report {
	c := &comparison{agent: new.Agent, direction: o.Direction, report: &Report{Findings: []Finding{}}}
	names := sortedNames(old, new)
	for i, name := range names {
		before, had := old.ToolSchemas[name]
		after, has := new.ToolSchemas[name]
		c.name = name
		switch {
		case !has:
			c.add(Finding{Rule: RuleRemoved, Breaking: true, Message: "the capability is no longer offered"})
		case !had:
			c.add(Finding{Rule: RuleAdded, Message: "the capability is new"})
		default:
			c.capability(before, after)
		}
		if o.Progress != nil {
			o.Progress(i+1, len(names))
		}
	}
	c.report.sort()
	return c.report
}

// sort puts breaking findings first. It is stable: findings of one capability keep the
// order of their schemas.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		if a.Breaking != b.Breaking {
			if a.Breaking {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Capability, b.Capability)
	})
}

// sortedNames returns the names of all capabilities of docs, each once.
func sortedNames(docs ...*capability.Published) []string {
	var names []string
	for _, d := range docs {
		for name := range d.ToolSchemas {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A comparison is one run of Compare.
type comparison struct {
	agent     envelope.Address
	direction Direction
	name      string
	report    *Report
}

// add completes a finding with the agent and the capability being compared.
func (c *comparison) add(f Finding) {
	f.Agent, f.Capability = c.agent, c.name
	c.report.Findings = append(c.report.Findings, f)
}

// capability compares two versions of one capability.
func (c *comparison) capability(before, after capability.ToolSchema) {
	if before.Description != after.Description {
		c.add(Finding{Rule: RuleDescription, Message: "the description changed: models read it before they call"})
	}
	if before.Idempotent && !after.Idempotent {
		c.add(Finding{Rule: RuleIdempotent, Message: "it is no longer idempotent: callers may not retry"})
	}
	c.meaning(before, after)
	if c.direction != Response {
		c.side(Request, source{before.InputSchema, before.SchemaProfile}, source{after.InputSchema, after.SchemaProfile})
	}
	if c.direction != Request {
		c.side(Response, source{before.OutputSchema, before.SchemaProfile}, source{after.OutputSchema, after.SchemaProfile})
	}
}

// A source is a schema and the profile by which it is read.
type source struct {
	json    json.RawMessage
	profile capability.SchemaProfile
}

// side explains the change of one side's schema. Callers send what the old input
// accepts, so the old input must be contained in the new one. They receive what
// the new output produces, so for responses containment runs the other way
// round, but the findings read from old to new on both sides.
func (c *comparison) side(side Direction, before, after source) {
	// The usual case. Unequal bytes may still accept the same values; Explain
	// decides that.
	if string(before.json) == string(after.json) && before.profile == after.profile {
		return
	}
	c.words(side, before.json, after.json)
	old, errOld := before.compile()
	new, errNew := after.compile()
	if errOld != nil || errNew != nil {
		c.add(Finding{Side: side, Rule: RuleSchema, Breaking: true,
			Message: fmt.Sprintf("the schema is not one that agentd can check: %s", cmp.Or(errText(errNew), errText(errOld)))})
		return
	}
	explain := contain.Explain
	if side == Response {
		explain = contain.ExplainOutput
	}
	// Explain has a breaking finding unless it proves containment, so a question
	// that it cannot decide counts as a break too.
	for _, f := range explain(old, new) {
		c.add(Finding{
			Side: side, Rule: string(f.Rule), Breaking: f.Breaking, Message: f.Message,
			Path: f.Path, Old: f.A, New: f.B, Witness: f.Witness,
		})
	}
}

// compile makes a schema; a side without one accepts everything.
func (s source) compile() (*schema.Schema, error) {
	opts, err := s.profile.CompileOptions()
	if err != nil {
		return nil, err
	}
	if s.json == nil {
		s.json = json.RawMessage("{}")
	}
	return schema.CompileWith(s.json, opts)
}

// errText returns the text of err, or "" for none.
func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
