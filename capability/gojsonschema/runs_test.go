package gojsonschema

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	library "github.com/xeipuuv/gojsonschema"

	"github.com/agentd/agentd/schema"
)

// hanging returns a validator whose library comes to the end of a payload when release
// has a value, or is closed.
func hanging(t *testing.T) (v *Validator, release chan struct{}) {
	t.Helper()
	_, v = compiled(t, `{"type":"object"}`)
	release = make(chan struct{})
	v.runs.judged = func(*Validator, []byte) ([]library.ResultError, error) {
		<-release
		return nil, nil
	}
	return v, release
}

// TestDeadline gives a payload up that the library does not come to an end with. So
// many of them, and none is judged any more, until the library has ended one.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, release := hanging(t)
		for n := 1; n <= MostHanging; n++ {
			start := time.Now()
			r := v.CheckWithin(t.Context(), []byte(`{}`))
			if r.Verdict != schema.Exceeded || r.Exceeded.Cause != nil || time.Since(start) != Deadline || v.Hanging() != n {
				t.Errorf("%d: %+v after %v, %d hang", n, r, time.Since(start), v.Hanging())
			}
		}
		start := time.Now()
		if r := v.CheckWithin(t.Context(), []byte(`{}`)); r.Verdict != schema.Exceeded || time.Since(start) != 0 {
			t.Errorf("with all hanging: %+v after %v", r, time.Since(start))
		}
		release <- struct{}{} // one of them comes to its end
		synctest.Wait()
		v.runs.judged = (*Validator).judge
		if r := v.CheckWithin(t.Context(), []byte(`{}`)); r.Verdict != schema.Valid || v.Hanging() != MostHanging-1 {
			t.Errorf("after one has ended: %+v, %d hang", r, v.Hanging())
		}
		close(release)
		synctest.Wait()
		if v.Hanging() != 0 {
			t.Errorf("%d hang in the end", v.Hanging())
		}
	})
}

// TestContextEndsTheLibrary gives a payload up when its call ends.
func TestContextEndsTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, release := hanging(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		r := v.CheckWithin(ctx, []byte(`{}`))
		if r.Verdict != schema.Exceeded || !errors.Is(r.Exceeded, context.DeadlineExceeded) {
			t.Errorf("%+v", r)
		}
		close(release)
	})
}
