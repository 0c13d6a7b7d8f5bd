package verdict

import (
	"errors"
	"strconv"
	"sync"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
)

// Validator judges payloads by one schema. Its exported fields are set before the
// first payload and not changed after. It is safe for concurrent use: what a pass
// over a payload needs is taken from a pool.
type Validator struct {
	Schema   *ir.Schema
	Root     *ir.Node // what judges the payload: the schema's root or a part of it
	MaxDepth int      // arrays and objects that may be open at once
	MaxBytes int      // of the longest payload

	runs sync.Pool // of *run
}

// Valid reports whether doc is valid. It stops at the first fault of any kind and,
// on valid payloads, allocates nothing.
func (v *Validator) Valid(doc []byte) bool {
	if len(doc) > v.MaxBytes {
		return false
	}
	r, ok := v.runs.Get().(*Run)
	if !ok {
		r = NewRun(v.Schema)
	}
	r.Begin(doc)
	valid := r.document(v.Root.Target(), v.MaxDepth)
	r.end()
	v.runs.Put(r)
	return valid
}

// Judge is valid, and tells payloads that break the schema from those that are not
// one strict JSON value within the limits: for these it returns why. The whole of
// the syntax is checked, so that a payload with faults of both kinds is always
// malformed.
func (v *Validator) Judge(doc []byte) (valid bool, malformed *ijson.SyntaxError) {
	if v.Valid(doc) {
		return true, nil
	}
	if len(doc) > v.MaxBytes {
		msg := "longer than the limit of " + strconv.Itoa(v.MaxBytes) + " bytes"
		return false, &ijson.SyntaxError{Offset: v.MaxBytes, Msg: msg}
	}
	var syntax *ijson.SyntaxError
	if err := ijson.Check(doc, v.MaxDepth); errors.As(err, &syntax) {
		return false, syntax
	}
	return false, nil
}
