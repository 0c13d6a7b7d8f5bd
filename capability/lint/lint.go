package lint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

// A Profile names a reader of capability files, and with it a set of rules.
type Profile string

// The profiles.
const (
	// Draft07Subset is agentd itself. Its rules find schemas that load but cannot
	// mean what they say, or say less than they could.
	Draft07Subset Profile = "draft-07-subset"
	// OpenAIStrict is OpenAI's tools and outputs with strict: true.
	OpenAIStrict Profile = "openai-strict"
	// Anthropic is the Messages API's tools. What only strict tool use refuses is
	// a warning.
	Anthropic Profile = "anthropic"
	// Gemini is Gemini's functionDeclarations. What the older field parameters
	// refuses and parametersJsonSchema takes is a warning.
	Gemini Profile = "gemini"
)

// Profiles returns all profiles. The first one is the default.
func Profiles() []Profile { return []Profile{Draft07Subset, OpenAIStrict, Anthropic, Gemini} }

// ParseProfile returns the profile of that name; "" is the default one.
func ParseProfile(name string) (Profile, error) {
	if name == "" {
		return Draft07Subset, nil
	}
	if slices.Contains(Profiles(), Profile(name)) {
		return Profile(name), nil
	}
	known := make([]string, 0, len(Profiles()))
	for _, p := range Profiles() {
		known = append(known, string(p))
	}
	return "", fmt.Errorf("no lint profile %q: choose one of %s", name, strings.Join(known, ", "))
}

// A Severity ranks findings by what they mean to the reader of the file.
type Severity string

// The severities, worst first.
const (
	// SeverityError means that the reader refuses the schema, or that no value
	// can satisfy it.
	SeverityError Severity = "error"
	// SeverityWarning means that some of the profile's readers refuse or ignore
	// what the rule found.
	SeverityWarning Severity = "warning"
	// SeverityInfo is a suggestion.
	SeverityInfo Severity = "info"
)

// rank orders severities for sorting, worst first.
func (s Severity) rank() int {
	return slices.Index([]Severity{SeverityError, SeverityWarning, SeverityInfo}, s)
}

// A Rule is one requirement of a profile.
type Rule struct {
	// ID is stable: <profile>/<name>.
	ID string
	// Severity is that of its findings.
	Severity Severity
	// Hint is what the author of the file can do instead.
	Hint string
	// Source is the document or observation that the rule rests on; see the
	// package comment.
	Source string
}

// A Finding is one violation of a rule.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Capability is the capability's name, "" for the file as such.
	Capability string `json:"capability,omitempty"`
	// Side is inputSchema, outputSchema, or "" for the capability as such.
	Side string `json:"side,omitempty"`
	// Pointer is the place in that schema (RFC 6901).
	Pointer string `json:"pointer"`
	// Position is the same place in the file.
	Position capability.Position `json:"position"`
	Message  string              `json:"message"`
	Hint     string              `json:"hint,omitempty"`
}

// Findings are sorted by severity, errors first, and then by position.
type Findings []Finding

// Failed reports whether there is an error among the findings.
func (f Findings) Failed() bool {
	return slices.ContainsFunc(f, func(x Finding) bool { return x.Severity == SeverityError })
}

// WriteText writes the findings for people, one a line.
func (f Findings) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, x := range f {
		fmt.Fprintf(&b, "%-7s [%s] %s\n", x.Severity, x.Rule, x.Position.Fault(x.Message, x.Hint))
	}
	if len(f) == 0 {
		b.WriteString("✓ nothing to report.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Options select what a run covers. The zero value is the usual one.
type Options struct {
	// Outputs applies the providers' profiles to output schemas as well. agentd's
	// own profile always covers them.
	Outputs bool
	// SecondOpinion reviews the schemas of [File]; see [capability.LoadOptions].
	SecondOpinion capability.SecondOpinion
}

// File loads a capabilities file and checks it. Faults of the file are findings
// of the rule "load"; the error is for a file that cannot be read.
func File(path string, p Profile, opts Options) (Findings, error) {
	doc, err := capability.LoadWith(path, capability.LoadOptions{ValidateSchemas: true, SecondOpinion: opts.SecondOpinion})
	var invalid *capability.LoadError
	switch {
	case errors.As(err, &invalid):
		findings := make(Findings, 0, len(invalid.Faults))
		for _, f := range invalid.Faults {
			findings = append(findings, Finding{Rule: "load", Severity: SeverityError, Pointer: f.Pointer, Position: f.Position, Message: f.Message, Hint: f.Hint})
		}
		return findings, nil
	case err != nil:
		return nil, err
	}
	return Check(doc, p, opts), nil
}

// Check applies a profile's rules to a document.
func Check(doc *capability.Document, p Profile, opts Options) Findings {
	l := &linter{profile: p, rules: make(map[string]Rule)}
	for _, r := range Rules(p) {
		l.rules[r.ID] = r
	}
	for _, c := range doc.Capabilities {
		l.capability(doc, c)
		l.contract(c, "inputSchema", c.Input)
		if opts.Outputs || p == Draft07Subset {
			l.contract(c, "outputSchema", c.Output)
		}
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Severity.rank(), b.Severity.rank()),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Pointer, b.Pointer),
		)
	})
	return l.found
}

// linter collects the findings of one document.
type linter struct {
	profile  Profile
	rules    map[string]Rule // those of the profile, by id
	found    Findings
	current  *capability.Capability
	side     string               // of current that is being checked; "" is neither
	document *capability.Contract // of that side; nil for neither
}

// report records a violation at a pointer into the current schema. If the profile
// lacks the rule, it does nothing.
func (l *linter) report(name, pointer, format string, args ...any) {
	rule, ok := l.rules[string(l.profile)+"/"+name]
	if !ok {
		return
	}
	f := Finding{
		Rule: rule.ID, Severity: rule.Severity, Capability: l.current.Name, Side: l.side, Pointer: pointer,
		Position: l.current.Position, Message: fmt.Sprintf(format, args...), Hint: rule.Hint,
	}
	// The place in the schema, where there is one; else the capability's own.
	if l.document != nil {
		f.Position = l.document.Locate(pointer)
	}
	l.found = append(l.found, f)
}

// capability checks what a capability has besides its schemas.
func (l *linter) capability(doc *capability.Document, c *capability.Capability) {
	l.current, l.side, l.document = c, "", nil
	if c.Description == "" {
		l.report("description", "", "the capability %q has no description", c.Name)
	}
	if c.Input == nil {
		l.report("untyped-tool", "", "the capability %q has no inputSchema", c.Name)
	}
	// Providers see the capability under this name.
	if name := doc.Agent.ID() + "__" + c.Name; len(name) > maxToolName(l.profile) {
		l.report("tool-name", "", "the tool name %s__%s is %d characters long, and %d are allowed", doc.Agent.ID(), c.Name, len(name), maxToolName(l.profile))
	}
	if first := doc.Agent.ID()[0]; first >= '0' && first <= '9' {
		l.report("tool-name-start", "", "the tool name %s__%s starts with a digit", doc.Agent.ID(), c.Name)
	}
}

// maxToolName is the length of the longest tool name that a reader accepts.
func maxToolName(p Profile) int {
	if p == Anthropic {
		return 128
	}
	return 64
}

// contract checks one schema: its root, each schema inside it once, and the sums
// over all of them.
func (l *linter) contract(c *capability.Capability, side string, contract *capability.Contract) {
	if contract == nil || contract.Schema == nil {
		return
	}
	declared := contract.DeclaredSchema() // what agentd adds is not the author's to mend
	l.current, l.side, l.document = c, side, contract
	w := newWalk(declared)
	l.root(declared.Root())
	for _, n := range w.order {
		l.node(n)
	}
	for _, r := range declared.Remarks() {
		l.report("remark", r.Pointer, "%s", r.Message)
	}
	l.totals(declared, w)
}

// root checks what providers require of a tool's parameters as a whole.
func (l *linter) root(n schema.Node) {
	if types := n.Resolve().Types(); len(types) != 1 || types[0] != schema.TypeObject {
		l.report("root-object", n.Pointer(), "the root is not of type object")
	}
	for _, u := range unions(n) {
		l.report("root-union", n.Pointer()+"/"+u, "%s stands at the root", u)
	}
}

// unions returns the names of the combinators that n has.
func unions(n schema.Node) []string {
	var out []string
	for _, c := range []struct {
		keyword  string
		branches []schema.Node
	}{{"oneOf", n.OneOf()}, {"anyOf", n.AnyOf()}, {"allOf", n.AllOf()}} {
		if c.branches != nil {
			out = append(out, c.keyword)
		}
	}
	return out
}
