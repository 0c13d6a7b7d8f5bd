package eventually_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/internal/eventually"
)

// failure is what a test has failed with.
type failure struct{ text string }

func (f *failure) Fatalf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

func TestSucceeds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		after time.Duration // until it happens
		want  string
	}{
		{0, ""},
		{30 * time.Second, ""},
		{time.Hour, "waited 1m0s until the door opens: it is shut"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, looks := time.Now(), 0
			var f failure
			eventually.Succeeds(&f, "the door opens", func() error {
				if looks++; time.Since(start) >= test.after {
					return nil
				}
				return errors.New("it is shut")
			})
			took := time.Since(start)
			if late := took - min(test.after, time.Minute); f.text != test.want || late < 0 || late > 50*time.Millisecond {
				t.Errorf("%q after %s, want %q", f.text, took, test.want)
			}
			if looks > 5000 {
				t.Errorf("%d looks", looks)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := 3
		eventually.Holds(t, "three looks are made", func() bool { left--; return left == 0 })
		var f failure
		eventually.Holds(&f, "pigs fly", func() bool { return false })
		if want := "waited 1m0s until pigs fly: it never happened"; f.text != want {
			t.Errorf("%q, want %q", f.text, want)
		}
	})
}
