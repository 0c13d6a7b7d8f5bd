package capability

import (
	"errors"
	"fmt"

	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// GoJSONSchema is the engine that validates with the library of that name,
// guarded. It refuses schemas on which the library is not safe.
type GoJSONSchema struct{}

// Name is "gojsonschema".
func (GoJSONSchema) Name() string { return "gojsonschema" }

// Compile makes a validator; the error may be a [*gojsonschema.RefusedError].
func (GoJSONSchema) Compile(s *schema.Schema) (Validator, error) { return gojsonschema.Compile(s) }

// EngineNamed finds an engine by the name that agent.yaml calls it; "" is the
// native one.
func EngineNamed(name string) (Engine, bool) {
	for _, e := range []Engine{Native{}, GoJSONSchema{}} {
		if e.Name() == name || name == "" {
			return e, true
		}
	}
	return nil, false
}

// secondOpinion holds a compiled schema against the draft-07 meta-schema, and
// its defaults and examples against the schema, by both engines.
type secondOpinion struct {
	meta   *gojsonschema.Meta
	value  strictyaml.Value // the schema in its file
	prefix string           // of messages
	schema *schema.Schema
}

// fault records a fault at a pointer into the schema.
func (o secondOpinion) fault(pointer, message, hint string) {
	o.value.FaultBelow(pointer, o.prefix+message, hint)
}

// check records what the second opinion objects to.
func (o secondOpinion) check() {
	for _, p := range o.meta.Check(o.schema.Source()) {
		o.fault(p.Pointer, p.Message, "")
	}
	seen := make(map[schema.Node]bool)
	o.annotations(o.schema.Root(), seen)
	for _, d := range o.schema.Definitions() {
		o.annotations(d.Schema, seen)
	}
}

// annotations checks the default and the examples of n and of the schemas in it.
func (o secondOpinion) annotations(n schema.Node, seen map[schema.Node]bool) {
	if _, boolean := n.Boolean(); boolean || seen[n] {
		return
	}
	seen[n] = true
	fallback, examples := n.Default(), n.Examples()
	if fallback != nil || examples != nil {
		c, err := o.compileAt(n)
		if err != nil {
			o.fault(n.Pointer(), err.Error(), "")
			return
		}
		if fallback != nil {
			o.example(c, n.Pointer()+"/default", "default", fallback)
		}
		for i, value := range examples {
			o.example(c, fmt.Sprintf("%s/examples/%d", n.Pointer(), i), "example", value)
		}
	}
	for _, child := range gojsonschema.Children(n) {
		o.annotations(child, seen)
	}
}

// engines are both validators of one schema; second is nil where the library
// is not safe.
type engines struct {
	native, second Validator
}

// compileAt makes the validators of one schema inside the whole.
func (o secondOpinion) compileAt(n schema.Node) (engines, error) {
	native, err := gojsonschema.Native(n)
	if err != nil {
		return engines{}, err
	}
	second, err := gojsonschema.CompileAt(o.schema, n)
	var refused *gojsonschema.RefusedError
	if errors.As(err, &refused) {
		return engines{native: native}, nil
	}
	if err != nil {
		return engines{}, err
	}
	return engines{native, second}, nil
}

// example checks one value by both engines. That they agree is checked first:
// where they do not, one of them is wrong, and nothing that the schema says can
// be relied on.
func (o secondOpinion) example(c engines, pointer, what string, value []byte) {
	first := c.native.Check(value)
	if c.second != nil {
		second := c.second.Check(value)
		beyond := len(second.Violations) == 1 && second.Violations[0].Keyword == schema.KeywordLimit
		if !beyond && second.Verdict != first.Verdict {
			o.fault(pointer, fmt.Sprintf("the %s is %s to the native validator but %s to gojsonschema", what, first.Verdict, second.Verdict),
				"this is a fault of a validator: simplify the schema, or leave the "+what+" out")
			return
		}
	}
	if first.Verdict == schema.Valid {
		return
	}
	reason := "it is not valid JSON"
	if len(first.Violations) > 0 {
		v := first.Violations[0]
		reason = v.Message
		if v.Path != "" {
			reason = v.Path + ": " + reason
		}
	}
	o.fault(pointer, fmt.Sprintf("the %s does not pass its own schema: %s", what, reason), "correct one of them")
}
