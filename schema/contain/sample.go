package contain

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentd/agentd/schema"
)

// ErrUnsatisfiable is returned by [Sample] for a schema that no value passes.
var ErrUnsatisfiable = errors.New("schema: no value passes the schema")

// UndecidedError is returned by [Sample] where it found no value and could not
// show that there is none.
type UndecidedError struct {
	Reason Reason
	// Pointer is the schema at which the search got stuck, where known.
	Pointer string
}

// Error names the reason and the place.
func (e *UndecidedError) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("schema: undecided whether a value passes (%s, at %s)", e.Reason, e.Pointer)
	}
	return fmt.Sprintf("schema: undecided whether a value passes (%s)", e.Reason)
}

// Sample returns a value that s accepts, as compact JSON: the same one for
// the same schema. Valid examples and defaults come first; otherwise members
// that may be absent are present where that stays small. The error is
// [ErrUnsatisfiable] or an *[UndecidedError].
func Sample(s *schema.Schema) ([]byte, error) {
	return SampleWithin(context.Background(), s, Budget{})
}

// SampleWithin is [Sample] within a budget and a context. What it returns has been
// accepted by the validator, not only by the search.
func SampleWithin(ctx context.Context, s *schema.Schema, budget Budget) ([]byte, error) {
	ctx, cancel := budget.bounded(ctx)
	defer cancel()
	p := newProver(ctx, budget, s)
	p.full = true
	r := p.sat(p.conjunction(nil, p.formOf(p.roots[0], false)))
	verdict := schema.Malformed
	if r.status == statusSat {
		verdict = s.Check(r.value).Verdict
	}
	switch {
	case verdict == schema.Valid:
		return append([]byte(nil), r.value...), nil
	case r.status == statusUnsat && p.spent == "":
		return nil, ErrUnsatisfiable
	case r.status == statusSat:
		return nil, &UndecidedError{Reason: p.unverified(r.value, verdict)}
	case p.spent != "":
		return nil, &UndecidedError{Reason: p.spent}
	}
	return nil, &UndecidedError{Reason: r.reason, Pointer: r.at.pointer}
}
