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
	fault, _ := v.pass(context.Background(), doc)
	return fault < 0
}

// pass returns where doc shows its first fault, or a negative number if it is valid. It
// also reports whether the budget was over, or ctx had ended, before there was an
// answer.
func (v *Validator) pass(ctx context.Context, doc []byte) (fault int, over bool) {
	if len(doc) > v.MaxBytes {
		return 0, false
	}
	r := v.take(ctx, doc)
	fault, over = r.document(v.Root.Target(), v.MaxDepth), r.over
	v.give(r)
	return fault, over
}

// take prepares scratch space from the pool for a payload.
func (v *Validator) take(ctx context.Context, doc []byte) *Run {
	r, ok := v.runs.Get().(*Run)
	if !ok {
		r = NewRun(v.Schema)
	}
	r.Begin(ctx, doc, v.MaxSteps)
	return r
}

// give returns it.
func (v *Validator) give(r *Run) {
	r.end()
	v.runs.Put(r)
}

// Explain calls explain with scratch space that judges through a memo, for as many steps
// as judging doc may take.
func (v *Validator) Explain(ctx context.Context, doc []byte, explain func(*Run)) {
	r := v.take(ctx, doc)
	r.remember(true)
	explain(r)
	r.remember(v.Schema.Memoise)
	v.give(r)
}

// A Judgement is what became of a payload. Without any field set, it breaks the schema.
type Judgement struct {
	Valid     bool
	Malformed *ijson.SyntaxError // why it is not one strict JSON value within the limits
	Exceeded  bool               // judging it takes more work than it may, or ctx has ended
	// Fault is where the first fault shows if it breaks the schema: each part that ends
	// before has passed what judges it.
	Fault int
}

// Judge is Valid, and tells payloads that break the schema from all others. The whole
// of the syntax is checked, so that a payload with faults of both kinds is always
// malformed.
func (v *Validator) Judge(ctx context.Context, doc []byte) Judgement {
	fault, over := v.pass(ctx, doc)
	if fault < 0 {
		return Judgement{Valid: true}
	}
	if len(doc) > v.MaxBytes {
		msg := "longer than the limit of " + strconv.Itoa(v.MaxBytes) + " bytes"
		return Judgement{Malformed: &ijson.SyntaxError{Offset: v.MaxBytes, Msg: msg}}
	}
	if err := ijson.Check(doc, v.MaxDepth); err != nil {
		var syntax *ijson.SyntaxError
		errors.As(err, &syntax)
		return Judgement{Malformed: syntax}
	}
	return Judgement{Exceeded: over, Fault: fault}
}
