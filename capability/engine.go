package capability

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentd/agentd/schema"
)

// A Validator checks one payload, given as the bytes of one JSON value. It is
// safe for concurrent use. A [*schema.Schema] is a Validator.
type Validator interface {
	// CheckWithin judges payload until ctx ends. A verdict that would take longer, or
	// more work than the validator allows, is [schema.Exceeded].
	CheckWithin(ctx context.Context, payload []byte) schema.Report
}

// An Engine turns a compiled schema into a [Validator]. [Native] is always
// there; a program plugs in others by handing them to [EngineNamed] and
// [Document.WithEngine].
type Engine interface {
	// Name is what agent.yaml calls the engine.
	Name() string
	// Compile may refuse a schema that the engine cannot enforce safely. The
	// schema has already passed package schema's own rules.
	Compile(s *schema.Schema) (Validator, error)
}

// A SecondOpinion reviews a schema that package schema has accepted and returns
// its objections; pointers are relative to the schema's root. A load with an
// objection fails. See [LoadOptions].
type SecondOpinion func(*schema.Schema) []schema.Fault

// Native is the default engine: the compiled schema validates by itself.
type Native struct{}

// Name is "native".
func (Native) Name() string { return "native" }

// Compile returns s.
func (Native) Compile(s *schema.Schema) (Validator, error) { return s, nil }

// A NoEngineError reports a validator that the program does not have.
type NoEngineError struct {
	// Name is the validator asked for.
	Name string
	// Have names the validators that the program has, the default first.
	Have []string
}

func (e *NoEngineError) Error() string {
	return fmt.Sprintf("validator %q is not built into this program, which has %s", e.Name, strings.Join(e.Have, ", "))
}

// Limited returns e with other limits on what one payload can cost.
func Limited(e Engine, l schema.Limits) Engine { return limited{e, l} }

type limited struct {
	Engine
	limits schema.Limits
}

// Compile compiles s under the limits.
func (e limited) Compile(s *schema.Schema) (Validator, error) {
	return e.Engine.Compile(s.WithLimits(e.limits))
}

// EngineNamed returns the engine of that name out of [Native] and plugged; ""
// is [Native]. The error is a [*NoEngineError].
func EngineNamed(name string, plugged ...Engine) (Engine, error) {
	none := &NoEngineError{Name: name}
	for _, e := range append([]Engine{Native{}}, plugged...) {
		if e.Name() == name || name == "" {
			return e, nil
		}
		none.Have = append(none.Have, e.Name())
	}
	return nil, none
}

// WithEngine returns a copy of the document whose contracts validate with e;
// digests and sources stay the same. The error is a [*LoadError] that names
// every schema the engine refuses.
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

// withEngine returns a copy of c that validates with e. A contract without a
// compiled schema checks nothing under any engine and is returned as it is.
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
