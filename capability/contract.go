package capability

import (
	"fmt"

	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// A Validator checks one payload, given as the bytes of one JSON value. It is
// safe for concurrent use. A [*schema.Schema] is a Validator.
type Validator interface {
	Check(payload []byte) schema.Report
}

// An Engine turns a compiled schema into a [Validator].
type Engine interface {
	// Name is what agent.yaml calls the engine.
	Name() string
	// Compile may refuse a schema that the engine cannot enforce safely. The
	// schema has passed package schema's own rules before.
	Compile(s *schema.Schema) (Validator, error)
}

// Native is the default engine: the compiled schema validates by itself.
type Native struct{}

// Name is "native".
func (Native) Name() string { return "native" }

// Compile returns s.
func (Native) Compile(s *schema.Schema) (Validator, error) { return s, nil }

// A Contract is one side of a capability: a schema, and what checks it.
type Contract struct {
	// Validator checks payloads. Nil if the document was loaded for inspection.
	Validator Validator
	// Schema is the compiled schema. Nil if the document was loaded for inspection.
	Schema *schema.Schema
	// Source is the schema as JSON, with its keys as declared. Read only.
	Source []byte
	// Digest covers what the schema asserts. See the package comment.
	Digest string

	at strictyaml.Value // the schema in its file
}

// Locate is the place in the file that a pointer into the schema (RFC 6901)
// leads to, or that of the nearest schema above it.
func (c *Contract) Locate(pointer string) Position { return c.at.Locate(pointer) }

// Check validates a payload; without a contract every payload is valid.
func (c *Contract) Check(payload []byte) schema.Report {
	if c == nil || c.Validator == nil {
		return schema.Report{Verdict: schema.Valid}
	}
	return c.Validator.Check(payload)
}

// WithEngine is the same document with validators of another engine. The error
// is a [*LoadError] that names every schema the engine refuses.
func (d *Document) WithEngine(e Engine) (*Document, error) {
	out := *d
	out.Capabilities = make([]*Capability, len(d.Capabilities))
	out.byName = make(map[string]*Capability, len(d.Capabilities))
	var refused LoadError
	for i, c := range d.Capabilities {
		changed := *c
		for _, side := range []struct {
			name     string
			contract **Contract
		}{{"inputSchema", &changed.Input}, {"outputSchema", &changed.Output}} {
			contract, err := (*side.contract).withEngine(e)
			if err != nil {
				refused.Faults = append(refused.Faults, c.Position.Fault(
					fmt.Sprintf("capability %q %s: %v", c.Name, side.name, err), "use the native validator"))
			}
			*side.contract = contract
		}
		out.Capabilities[i] = &changed
		out.byName[c.Name] = &changed
	}
	if len(refused.Faults) > 0 {
		return nil, &refused
	}
	return &out, nil
}

// withEngine is a copy of c under another engine; c itself if nothing checks.
func (c *Contract) withEngine(e Engine) (*Contract, error) {
	if c == nil || c.Schema == nil {
		return c, nil
	}
	v, err := e.Compile(c.Schema)
	if err != nil {
		return c, err
	}
	out := *c
	out.Validator = v
	return &out, nil
}
