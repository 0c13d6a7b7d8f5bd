package gojsonschema

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

// Engine is the [capability.Engine] that agent.yaml selects with
// "validator: gojsonschema".
type Engine struct{}

// Name is "gojsonschema".
func (Engine) Name() string { return "gojsonschema" }

// Compile makes a validator; the error may be a [*RefusedError].
func (Engine) Compile(s *schema.Schema) (capability.Validator, error) { return Compile(s) }

// NewSecondOpinion returns a review for [capability.LoadOptions]. It holds a
// schema against the draft-07 meta-schema, and every default and example in the
// schema against the schema that it stands in, with both engines.
//
// It has no opinion on schemas of the full profile.
//
// The meta-schema is compiled once, for the first schema; share one review
// among the files of a load. It is safe for concurrent use.
func NewSecondOpinion() capability.SecondOpinion {
	meta := sync.OnceValues(NewMeta)
	return func(s *schema.Schema) []schema.Fault {
		if s.Profile() != schema.ProfileSubset {
			return nil // the library knows draft-07 alone, and would see half of it
		}
		m, err := meta()
		if err != nil {
			// Without the meta-schema there is no opinion, so no schema loads.
			return []schema.Fault{{Message: err.Error()}}
		}
		r := review{schema: s}
		for _, p := range m.Check(s.Source()) {
			r.fault(p.Pointer, p.Message, "")
		}
		r.annotations(s.Root())
		for _, d := range s.Definitions() {
			r.annotations(d.Schema)
		}
		return r.faults
	}
}

// review collects the objections to one schema.
type review struct {
	schema *schema.Schema
	faults []schema.Fault
}

// fault records an objection at a pointer into the schema.
func (r *review) fault(pointer, message, hint string) {
	r.faults = append(r.faults, schema.Fault{Pointer: pointer, Message: message, Hint: hint})
}

// annotations checks the default and the examples of n and of the schemas in it.
// It stops at references: their targets are the definitions and the root, each of
// which is visited by itself.
func (r *review) annotations(n schema.Node) {
	if _, boolean := n.Boolean(); boolean {
		return
	}
	fallback, examples := n.Default(), n.Examples()
	if fallback != nil || examples != nil {
		c, err := r.compileAt(n)
		if err != nil {
			r.fault(n.Pointer(), err.Error(), "")
			return
		}
		if fallback != nil {
			r.value(c, n.Pointer()+"/default", "default", fallback)
		}
		for i, example := range examples {
			r.value(c, fmt.Sprintf("%s/examples/%d", n.Pointer(), i), "example", example)
		}
	}
	for _, child := range children(n) {
		r.annotations(child)
	}
}

// validators are both validators of one schema; library is nil where the
// library is not safe.
type validators struct {
	native, library capability.Validator
}

// compileAt makes the validators of one schema inside the whole.
func (r *review) compileAt(n schema.Node) (validators, error) {
	native, err := compileNative(n)
	if err != nil {
		return validators{}, err
	}
	library, err := CompileAt(r.schema, n)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return validators{native: native}, nil
	}
	if err != nil {
		return validators{}, err
	}
	return validators{native, library}, nil
}

// value checks a default or an example with both engines. Their agreement comes
// first: where they disagree one of them is wrong, and the schema cannot be
// trusted to mean what it says.
func (r *review) value(c validators, pointer, what string, value []byte) {
	first := c.native.CheckWithin(context.Background(), value)
	if c.library != nil {
		second := c.library.CheckWithin(context.Background(), value)
		// A value that the library cannot judge is no disagreement.
		beyond := len(second.Violations) == 1 && second.Violations[0].Keyword == schema.KeywordLimit
		if !beyond && second.Verdict != first.Verdict {
			r.fault(pointer, fmt.Sprintf("the %s is %s to the native validator but %s to gojsonschema", what, first.Verdict, second.Verdict),
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
	r.fault(pointer, fmt.Sprintf("the %s does not pass its own schema: %s", what, reason), "correct one of them")
}
