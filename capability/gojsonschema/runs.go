package gojsonschema

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	library "github.com/xeipuuv/gojsonschema"

	"github.com/agentd/agentd/schema"
)

// Deadline is how long the library may take for one payload.
const Deadline = 2 * time.Second

// grace is what a payload is given although its call has ended.
const grace = 10 * time.Millisecond

// MostHanging is how many payloads of one validator may be with the library beyond
// their deadline. The library cannot be stopped, so each of them keeps a processor
// busy; with so many no other payload is judged until one has come to its end.
const MostHanging = 4

// runs are the passes of the library over the payloads of one validator.
type runs struct {
	deadline time.Duration
	judged   func(v *Validator, canonical []byte) ([]library.ResultError, error)
	hanging  atomic.Int32
}

func newRuns() *runs {
	return &runs{deadline: Deadline, judged: (*Validator).judge}
}

// Hanging is how many payloads the library is still at although they were given up.
func (v *Validator) Hanging() int { return int(v.runs.hanging.Load()) }

// judge has the library validate a payload on a goroutine of its own, and gives it up
// at the deadline. The error is a [*schema.ExceededError] then.
func (r *runs) judge(ctx context.Context, v *Validator, canonical []byte) ([]library.ResultError, error) {
	if r.hanging.Load() >= MostHanging {
		return nil, &schema.ExceededError{Limit: "the gojsonschema engine can bear: " + strconv.Itoa(MostHanging) + " payloads before this one have not come to an end"}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.deadline, errDeadline)
	defer cancel()
	// The verdict and the deadline race for the run: whoever comes first ends it, so
	// that one that was given up is counted until it is over, and no other is.
	type verdict struct {
		found []library.ResultError
		err   error
	}
	var ended atomic.Bool
	done := make(chan verdict, 1)
	go func() {
		found, err := r.judged(v, canonical)
		done <- verdict{found, err}
		if ended.Swap(true) {
			r.hanging.Add(-1)
		}
	}()
	// The answer of a call may come at its end: what takes no time is judged even then.
	soon := time.NewTimer(grace)
	defer soon.Stop()
	select {
	case got := <-done:
		return got.found, got.err
	case <-soon.C:
	}
	select {
	case got := <-done:
		return got.found, got.err
	case <-ctx.Done():
	}
	r.hanging.Add(1)
	if ended.Swap(true) { // it came to its end meanwhile
		r.hanging.Add(-1)
	}
	exceeded := &schema.ExceededError{Limit: r.deadline.String() + " of the gojsonschema engine"}
	if !errors.Is(context.Cause(ctx), errDeadline) {
		exceeded.Cause = ctx.Err()
	}
	return nil, exceeded
}
