package projection

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/schema"
)

// Projection writes schemas for the limits of one provider. Those that [Named] returns
// are safe for concurrent use.
type Projection interface {
	// Name is the name that [Named] knows.
	Name() string
	// Project returns the projection of a schema of arguments: of the subset that
	// capabilities are declared in, or else of the full profile. It fails for what is no
	// such schema, and for nothing else.
	Project(src json.RawMessage) (*Projected, error)
	// CheckName returns an error for the name of a tool that the provider refuses.
	CheckName(tool string) error
}

// Projected is a schema as one provider takes it.
type Projected struct {
	Schema  json.RawMessage
	Dropped []Drop // in the order in which they were found
	plan    *plan
}

// Drop is something that a schema says and its projection does not.
type Drop struct {
	Pointer string // where it stands, as an RFC 6901 pointer into the schema
	Keyword string // the keyword that says it
	Reason  string // what became of it, for people
	// Narrows says that there may be arguments that the schema accepts and that cannot be
	// written by the projection. All other drops let more arguments through, which the
	// schema then refuses.
	Narrows bool
}

// String returns `/pointer keyword: reason`.
func (d Drop) String() string {
	pointer := d.Pointer
	if pointer == "" {
		pointer = "/"
	}
	return fmt.Sprintf("%s %s: %s", pointer, d.Keyword, d.Reason)
}

// Names lists the projections that [Named] knows.
func Names() []string {
	all := make([]string, 0, len(providers()))
	for _, l := range providers() {
		all = append(all, l.name)
	}
	return all
}

// Named returns the projection of a name. Its error has the nearest name that exists.
func Named(name string) (Projection, error) {
	for _, l := range providers() {
		if l.name == name {
			return &projection{l}, nil
		}
	}
	hint := ""
	if near := spelling.Nearest(name, Names()); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, fmt.Errorf("there is no projection %q (there are %s%s)", name, strings.Join(Names(), ", "), hint)
}

type projection struct{ limits }

func (p *projection) Name() string { return p.name }

func (p *projection) CheckName(tool string) error {
	if !p.tools.MatchString(tool) {
		return fmt.Errorf("%s takes no tool of the name %q: names match %s", p.name, tool, p.tools)
	}
	return nil
}

func (p *projection) Project(src json.RawMessage) (*Projected, error) {
	compiled, err := schema.Compile(src)
	if err != nil {
		if compiled, err = schema.CompileWith(src, schema.CompileOptions{Profile: schema.ProfileFull}); err != nil {
			return nil, fmt.Errorf("project a schema for %s: %w", p.name, err)
		}
	}
	b := &builder{limits: p.limits, told: map[Drop]bool{}, open: map[schema.Node]int{}, definitions: map[schema.Node]*definition{}}
	return b.arguments(compiled.Root())
}
