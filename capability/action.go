package capability

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema/contain"
)

// DefaultActionLimit is the rate limit of an action that declares none: each caller may
// execute it so often. The guide to action registries that they follow allows no
// execution without a limit.
func DefaultActionLimit() RateLimit {
	const perMinute = 600
	return RateLimit{Requests: perMinute, Period: time.Minute, Burst: perMinute}
}

// DecodeAction reads an entry of layers.capabilities.actions as a capability: the
// action's id is the name, its parameters are the input, and what it returns is the output.
// Both may also have the short form, a mapping from names to schemas in which
// `required: true` stands beside the type. The caller has asked o for the keys that
// say how the action runs, and calls Done.
//
// builtIn is nil, or the action of the program's own that the entry uses. What the entry
// leaves out is that action's. What it says can only take away: parameters must be a part
// of the action's, and permissions are needed in addition.
func DecodeAction(o *strictyaml.Object, opts LoadOptions, builtIn *Capability) *Capability {
	d := &decoder{opts: opts}
	v := o.Value()
	c := &Capability{
		Name:        decodeName(o.Need("id")),
		Title:       o.Get("name").Text(),
		Description: o.Get("description").String(),
		Timeout:     o.GetAny("timeoutMs", "timeout_ms").Millis(maxWait),
		Idempotent:  o.Get("idempotent").Bool(),
		Since:       decodeSince(o.Get("since")),
		Position:    v.Position(),
	}
	c.Skill = c.Name
	c.Input = d.shortContract(c, "parameters", o.Get("parameters"))
	c.Output = d.shortContract(c, "returns", o.Get("returns"))
	decodeCarried(o, c)
	c.ID = "" // the id is the name: in a capability of the ARAL standard they are two
	permissions := o.Get("permissions")
	if builtIn != nil {
		c.use(builtIn, v, o.Get("parameters"))
	} else {
		o.Need("parameters")
		if !permissions.Present() {
			v.Fault(fmt.Sprintf("the action %q does not say which permissions it needs", c.Name), "write permissions: [] if it needs none")
		}
	}
	if c.Input != nil && c.Input.Schema != nil && !slices.Equal(typeNames(c.Input), []string{"object"}) {
		o.Get("parameters").Fault(fmt.Sprintf("the parameters of the action %q are no object", c.Name), "type: object")
	}
	if c.RateLimit == nil {
		limit := DefaultActionLimit()
		c.RateLimit = &limit
	}
	return c
}

func typeNames(c *Contract) (names []string) {
	for _, t := range c.Schema.Root().Types() {
		names = append(names, string(t))
	}
	return names
}

// use takes from a built-in action what the entry v leaves out.
func (c *Capability) use(b *Capability, v, parameters strictyaml.Value) {
	if c.Description == "" {
		c.Description = b.Description
	}
	if c.Title == "" {
		c.Title = b.Title
	}
	if c.RateLimit == nil {
		c.RateLimit = b.RateLimit
	}
	if c.Timeout == 0 {
		c.Timeout = b.Timeout
	}
	c.Idempotent = c.Idempotent || b.Idempotent
	c.NeedAlso(b.Permissions)
	if c.Input != nil && c.Input.Schema != nil && b.Input != nil {
		if proof := contain.IsSubschema(c.Input.Schema, b.Input.Schema); proof.Answer != contain.Proven {
			hint := "leave the key out to take what the action takes"
			if proof.Witness != nil {
				hint = fmt.Sprintf("it does not take %.200s; %s", proof.Witness, hint)
			}
			parameters.Fault(fmt.Sprintf("these parameters are not all taken by the built-in action %q", b.Name), hint)
		}
	}
	if c.Input == nil {
		c.Input = b.Input.placed(v)
	}
	if c.Output == nil {
		c.Output = b.Output.placed(v)
	}
}

// NeedAlso adds permissions that c needs.
func (c *Capability) NeedAlso(permissions []string) {
	all := slices.Clone(c.Permissions)
	if all == nil {
		all = []string{} // it needs nothing else
	}
	for _, p := range permissions {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	c.Permissions = all
}

// placed returns a contract that stands in no file as one that the value v stands for.
func (c *Contract) placed(v strictyaml.Value) *Contract {
	if c == nil {
		return nil
	}
	out := *c
	out.at = v.Places()
	return &out
}

// shortContract reads a schema, or the short form of one.
func (d *decoder) shortContract(of *Capability, side string, v strictyaml.Value) *Contract {
	// Parameters that are {} are none; what returns {} returns anything.
	if v.Kind() != strictyaml.Map || !short(v) || side == "returns" && len(v.Entries()) == 0 {
		return d.contract(of, side, v)
	}
	return d.compile(of, side, v, longForm(v, side == "parameters"), true)
}

// short reports whether a mapping is the short form. A schema's type is a string and its
// required a list; of parameters with these names, each is a schema, and so a mapping.
func short(v strictyaml.Value) bool {
	o := v.Object()
	return o.Get("type").Kind() != strictyaml.String && o.Get("required").Kind() != strictyaml.List && o.Get("$ref").Kind() != strictyaml.String
}

// longForm returns the schema that a short form stands for. A closed one takes no other
// members: a misspelt parameter is then found by its sender.
func longForm(v strictyaml.Value, closed bool) []byte {
	properties, required := []byte{}, []byte{}
	for i, e := range v.Entries() {
		if i > 0 {
			properties = append(properties, ',')
		}
		properties = append(ijson.AppendQuoted(properties, e.Name), ':')
		if e.Value.Kind() != strictyaml.Map {
			e.Value.Fault(fmt.Sprintf("expected a mapping that describes %q, but got %s", e.Name, e.Value.Kind()), "such as {type: string, required: true}")
			properties = append(properties, "{}"...)
			continue
		}
		properties = append(properties, '{')
		first := true
		for _, member := range e.Value.Entries() {
			if member.Name == "required" && member.Value.Kind() != strictyaml.List {
				if member.Value.Bool() {
					required = append(ijson.AppendQuoted(required, e.Name), ',')
				}
				continue
			}
			if !first {
				properties = append(properties, ',')
			}
			first = false
			properties = append(ijson.AppendQuoted(properties, member.Name), ':')
			properties = member.Value.AppendJSON(properties)
		}
		properties = append(properties, '}')
	}
	out := append([]byte(`{"type":"object","properties":{`), properties...)
	out = append(append(out, `},"required":[`...), strings.TrimSuffix(string(required), ",")...)
	out = append(out, ']')
	if closed {
		out = append(out, `,"additionalProperties":false`...)
	}
	return append(out, '}')
}

// shortPointer turns a pointer into a schema into one into its short form.
func shortPointer(pointer string) string {
	below, ok := strings.CutPrefix(pointer, "/properties")
	if !ok {
		return "" // of the object itself, which the file does not spell out
	}
	return below
}

// Offer returns the document of an agent that offers actions besides what d, which may
// be nil, has. A document that begins with them has the path and the transports given. The
// error is a [*LoadError] for names that occur twice.
func Offer(d *Document, actions []*Capability, path string, agent envelope.Address, transports []TransportSpec) (*Document, error) {
	out := &Document{Path: path, Version: 1, Agent: agent, Transports: transports}
	if d != nil {
		*out = *d
		out.Capabilities = slices.Clone(d.Capabilities)
	}
	out.byName = make(map[string]*Capability, len(out.Capabilities)+len(actions))
	folded := map[string]*Capability{}
	for _, c := range out.Capabilities {
		out.byName[c.Name], folded[strings.ToLower(c.Name)] = c, c
	}
	var clash LoadError
	for _, c := range actions {
		if first := folded[strings.ToLower(c.Name)]; first != nil {
			clash.Faults = append(clash.Faults, c.Position.Fault(
				fmt.Sprintf("the action %q has the name of a capability, first at %s:%d", c.Name, first.Position.File, first.Position.Line), "rename one of them"))
		}
		out.byName[c.Name], folded[strings.ToLower(c.Name)] = c, c
		out.Capabilities = append(out.Capabilities, c)
	}
	if clash.Faults != nil {
		return nil, &clash
	}
	if err := out.computeDigests(); err != nil {
		return nil, fmt.Errorf("%s: %w", out.Path, err)
	}
	return out, nil
}

// Replaced returns a copy of d in which capabilities are others of the same names and
// contracts.
func (d *Document) Replaced(by func(*Capability) *Capability) *Document {
	out := *d
	out.Capabilities = make([]*Capability, len(d.Capabilities))
	out.byName = make(map[string]*Capability, len(d.Capabilities))
	for i, c := range d.Capabilities {
		out.Capabilities[i] = by(c)
		out.byName[c.Name] = out.Capabilities[i]
	}
	return &out
}
