package mcpbridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/peertool"
	"github.com/agentd/agentd/mcpbridge/projection"
)

// A CollisionError reports two capabilities that would be one tool: whoever called it
// could not say which of the two it means.
type CollisionError struct {
	Client Client
	Tool   string
	First  string // agent://<id>/<capability>
	Second string
}

func (e *CollisionError) Error() string {
	return fmt.Sprintf("%s and %s would both be the tool %q of %s; deny one of them to it", e.First, e.Second, e.Tool, e.Client)
}

// A tool is a capability as a client sees it.
type tool struct {
	Callable
	name          string
	input, output peertool.Shape
	// schema is input's as the client is shown it, and dropped what a projection left out.
	schema  json.RawMessage
	dropped []string
	// projected is what schema was projected to; nil without a profile.
	projected *projection.Projected
	// generic is set for calls by the names of agent and capability: no schema of the
	// tool describes their answers.
	generic bool
}

// what names the capability in errors and logs.
func (t *tool) what() string { return string(t.Address) + "/" + t.Capability.Name }

// durable reports whether a queue keeps the tool's calls.
func (t *tool) durable() bool { return t.Capability.Delivery == capability.DeliveryDurable }

// list makes the tools of a client, by name.
func (b *Bridge) list(c Client) (map[string]*tool, error) {
	callables, err := b.backend.Callables(c)
	if err != nil {
		return nil, fmt.Errorf("the tools of %s: %w", c, err)
	}
	// Sorted, so that the same two capabilities collide in the same words.
	slices.SortFunc(callables, func(x, y Callable) int {
		if n := strings.Compare(string(x.Address), string(y.Address)); n != 0 {
			return n
		}
		return strings.Compare(x.Capability.Name, y.Capability.Name)
	})
	bare := b.bareNames(callables)
	all := map[string]*tool{}
	for _, callable := range callables {
		t, err := b.newTool(callable, bare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.what(), err)
		}
		if other, taken := all[t.name]; taken {
			return nil, &CollisionError{Client: c, Tool: t.name, First: other.what(), Second: t.what()}
		}
		all[t.name] = t
	}
	return all, nil
}

// bareNames counts the capabilities by the name that they would have without their
// agent's. A name that one of agentd's own tools has, or that is another's full name, is
// not free.
func (b *Bridge) bareNames(callables []Callable) map[string]int {
	if !b.opts.Bare {
		return nil
	}
	taken := map[string]int{requestAgentTool: 2, awaitTool: 2}
	for _, c := range callables {
		taken[peertool.BareName(c.Capability.Name)]++
		taken[peertool.Name(c.Address.ID(), c.Capability.Name)]++
	}
	return taken
}

// newTool never returns nil.
func (b *Bridge) newTool(c Callable, bare map[string]int) (*tool, error) {
	t := &tool{Callable: c, name: peertool.Name(c.Address.ID(), c.Capability.Name)}
	if name := peertool.BareName(c.Capability.Name); bare[name] == 1 {
		t.name = name
	}
	t.input, t.output = peertool.Input(c.Capability), peertool.Output(c.Capability)
	t.schema = t.input.Schema
	if b.opts.Profile == nil {
		return t, nil
	}
	var err error
	if t.projected, err = b.opts.Profile.Project(t.input.Schema); err != nil {
		return t, err
	}
	t.schema = t.projected.Schema
	for _, d := range t.projected.Dropped {
		t.dropped = append(t.dropped, d.String())
	}
	return t, b.opts.Profile.CheckName(t.name)
}

// isObjectSchema reports whether a schema is one that the protocol takes for arguments.
func isObjectSchema(s json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(s, &root) == nil && root.Type == "object"
}

// arguments returns what a model means by the arguments that it wrote.
func (t *tool) arguments(written json.RawMessage) json.RawMessage {
	if t.projected == nil {
		return written
	}
	return t.projected.Restore(written)
}

// sorted are the tools of a list by their names.
func sorted(all map[string]*tool) []*tool {
	list := make([]*tool, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}
