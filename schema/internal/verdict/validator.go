package verdict

import (
	"context"
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
	MaxSteps int      // of work on a payload; see DefaultSteps

	runs sync.Pool // of *run
}

// Valid reports whether doc is valid. It stops at the first fault of any kind and,
// on valid payloads, allocates nothing. A payload that takes more work than it may is
// not valid.
func (v *Validator) Valid(doc []byte) bool {
	valid, _ := v.pass(context.Background(), doc)
	return valid
}

// pass is Valid until ctx ends, and reports whether the budget was over before there
// was an answer.
func (v *Validator) pass(ctx context.Context, doc []byte) (valid, over bool) {
	if len(doc) > v.MaxBytes {
		return false, false
	}
	r, ok := v.runs.Get().(*Run)
	if !ok {
		r = NewRun(v.Schema)
	}
	r.Begin(ctx, doc, v.MaxSteps)
	valid, over = r.document(v.Root.Target(), v.MaxDepth), r.over
	r.end()
	v.runs.Put(r)
	return valid, over
}

// A Judgement is what became of a payload. Without any field set, it breaks the schema.
type Judgement struct {
	Valid     bool
	Malformed *ijson.SyntaxError // why it is not one strict JSON value within the limits
	Exceeded  bool               // judging it takes more work than it may, or ctx has ended
}

// Judge is Valid, and tells payloads that break the schema from all others. The whole
// of the syntax is checked, so that a payload with faults of both kinds is always
// malformed.
func (v *Validator) Judge(ctx context.Context, doc []byte) Judgement {
	valid, over := v.pass(ctx, doc)
	if valid {
		return Judgement{Valid: true}
	}
	if len(doc) > v.MaxBytes {
		msg := "longer than the limit of " + strconv.Itoa(v.MaxBytes) + " bytes"
		return Judgement{Malformed: &ijson.SyntaxError{Offset: v.MaxBytes, Msg: msg}}
	}
	var syntax *ijson.SyntaxError
	if err := ijson.Check(doc, v.MaxDepth); errors.As(err, &syntax) {
		return Judgement{Malformed: syntax}
	}
	return Judgement{Exceeded: over}
}
