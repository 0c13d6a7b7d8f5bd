package eventually

import (
	"errors"
	"time"
)

// bound is how long a test waits. It is for machines that are busy with much else: a test
// that asserts how long something takes has a bound of its own.
const bound = time.Minute

// The pauses between two looks. They grow, so that what comes soon is seen soon, and what
// takes long is not slowed down by the looks.
const (
	shortest = time.Millisecond
	longest  = 16 * time.Millisecond
)

// A T is a test, or a script of one.
type T interface {
	// Fatalf fails the test and ends its goroutine.
	Fatalf(format string, args ...any)
}

// Holds waits until cond returns true. It fails the test after a minute and says what it
// has waited for.
func Holds(t T, what string, cond func() bool) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	Succeeds(t, what, func() error {
		if cond() {
			return nil
		}
		return errNotYet
	})
}

// errNotYet is the error of a condition that does not hold.
var errNotYet = errors.New("it never happened")

// Succeeds waits until try returns nil. It fails the test after a minute and says what it
// has waited for, and the last error.
func Succeeds(t T, what string, try func() error) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	end := time.Now().Add(bound)
	for pause := shortest; ; pause = min(2*pause, longest) {
		late := !time.Now().Before(end) // before the look: a test that did not run for long gets one more
		err := try()
		if err == nil {
			return
		}
		if late {
			t.Fatalf("waited %s until %s: %v", bound, what, err)
			return
		}
		time.Sleep(pause)
	}
}
