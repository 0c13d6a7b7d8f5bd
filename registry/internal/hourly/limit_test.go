package hourly_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/hourly"
)

func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := hourly.New(4, "mails")
		code := func(n int) (registry.Code, string) {
			var e *registry.Error
			if err := l.Take(n); errors.As(err, &e) {
				return e.Code, e.Message
			}
			return "", ""
		}
		if c, _ := code(5); c != registry.TooLarge {
			t.Errorf("more than ever: %q", c)
		}
		for _, n := range []int{3, 1} {
			if c, _ := code(n); c != "" {
				t.Errorf("%d: %q", n, c)
			}
		}
		// A quarter of an hour brings one; asking in vain costs nothing.
		for range 3 {
			if c, text := code(1); c != registry.RateLimitExceeded || !strings.Contains(text, "4 mails an hour; try again in 900 s") {
				t.Errorf("%q: %s", c, text)
			}
		}
		time.Sleep(15 * time.Minute)
		if c, _ := code(1); c != "" {
			t.Errorf("after a quarter: %q", c)
		}
		time.Sleep(24 * time.Hour)
		if c, _ := code(4); c != "" {
			t.Errorf("after a day: %q", c)
		}
		if c, _ := code(1); c != registry.RateLimitExceeded {
			t.Errorf("a day brings no more than an hour: %q", c)
		}
	})
}
