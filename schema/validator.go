package schema

import (
	"errors"
	"strconv"
	"sync"

	"github.com/agentd/agentd/internal/ijson"
)

// validator judges payloads by one schema. Its exported fields are set before the
// first payload and not changed after. It is safe for concurrent use: what a pass
// over a payload needs is taken from a pool.
type validator struct {
	schema   *compiledSchema
	root     *node // what judges the payload: the schema's root or a part of it
	maxDepth int   // arrays and objects that may be open at once
	maxBytes int   // of the longest payload

	runs sync.Pool // of *run
}

// valid reports whether doc is valid. It stops at the first fault of any kind and,
// on valid payloads, allocates nothing.
func (v *validator) valid(doc []byte) bool {
	if len(doc) > v.maxBytes {
		return false
	}
	r, ok := v.runs.Get().(*run)
	if !ok {
		r = newRun(v.schema)
	}
	r.begin(doc)
	valid := r.document(v.root.target(), v.maxDepth)
	r.end()
	v.runs.Put(r)
	return valid
}

// judge is valid, and tells payloads that break the schema from those that are not
// one strict JSON value within the limits: for these it returns why. The whole of
// the syntax is checked, so that a payload with faults of both kinds is always
// malformed.
func (v *validator) judge(doc []byte) (valid bool, malformed *ijson.SyntaxError) {
	if v.valid(doc) {
		return true, nil
	}
	if len(doc) > v.maxBytes {
		msg := "longer than the limit of " + strconv.Itoa(v.maxBytes) + " bytes"
		return false, &ijson.SyntaxError{Offset: v.maxBytes, Msg: msg}
	}
	var syntax *ijson.SyntaxError
	if err := ijson.Check(doc, v.maxDepth); errors.As(err, &syntax) {
		return false, syntax
	}
	return false, nil
}
