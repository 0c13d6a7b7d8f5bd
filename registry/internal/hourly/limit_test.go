package hourly_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/hourly"
)

// open returns what takes from the limit of an agent.
func open(t *testing.T, dir string, most int, now *time.Time) func(n int) (registry.Code, string) {
	t.Helper()
	l, err := hourly.Open(registry.Context{Context: t.Context(), StateDir: dir, Logger: slog.New(slog.DiscardHandler)}, "mail", most, "mails", func() time.Time { return *now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(n int) (registry.Code, string) {
		var e *registry.Error
		err := l.Take(t.Context(), n)
		if errors.As(err, &e) {
			return e.Code, e.Message
		}
		if err != nil {
			t.Error(err)
		}
		return "", ""
	}
}

func TestTake(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "in a file": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			take := open(t, dir, 4, &now)
			if c, _ := take(5); c != registry.TooLarge {
				t.Errorf("more than ever: %q", c)
			}
			for _, n := range []int{3, 1} {
				if c, _ := take(n); c != "" {
					t.Errorf("%d: %q", n, c)
				}
			}
			// A quarter of an hour brings one; asking in vain costs nothing.
			for range 3 {
				if c, text := take(1); c != registry.RateLimitExceeded || !strings.Contains(text, "4 mails an hour; try again in 900 s") {
					t.Errorf("%q: %s", c, text)
				}
			}
			now = now.Add(15 * time.Minute)
			if c, _ := take(1); c != "" {
				t.Errorf("after a quarter: %q", c)
			}
			now = now.Add(24 * time.Hour)
			if c, _ := take(4); c != "" {
				t.Errorf("after a day: %q", c)
			}
			if c, _ := take(1); c != registry.RateLimitExceeded {
				t.Errorf("a day brings no more than an hour: %q", c)
			}
			// An hour is the longest wait, whatever becomes of the clock.
			now = now.Add(-24 * time.Hour)
			if c, text := take(4); c != registry.RateLimitExceeded || !strings.Contains(text, "in 3600 s") {
				t.Errorf("before a day: %q: %s", c, text)
			}
		})
	}
}

// A program reads when it may come again, as for the rate limit of a call.
func TestDetails(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l, err := hourly.Open(registry.Context{Context: t.Context()}, "mail", 4, "mails", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Take(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	var e *registry.Error
	if err := l.Take(t.Context(), 2); !errors.As(err, &e) {
		t.Fatal(err)
	}
	want := `{"error":"rate_limit_exceeded","message":"Too many requests","retry_after_seconds":900,"limit":4,"remaining":1,"reset_at":"2027-01-15T08:45:00Z"}`
	if string(e.Details) != want {
		t.Errorf("%s, want %s", e.Details, want)
	}
}

// The hour of an agent is one: for what is opened at a reload beside what there was, for
// another process, after a start, and under another limit.
func TestHourGoesOn(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	before := open(t, dir, 4, &now)
	if c, _ := before(3); c != "" {
		t.Fatal(c)
	}
	after := open(t, dir, 4, &now)
	for i, want := range []registry.Code{"", registry.RateLimitExceeded} {
		if c, _ := after(1); c != want {
			t.Errorf("%d: %q, want %q", i, c, want)
		}
	}
	if c, _ := before(1); c != registry.RateLimitExceeded {
		t.Errorf("before: %q", c)
	}
	if c, _ := open(t, dir, 400, &now)(1); c != registry.RateLimitExceeded {
		t.Errorf("under another limit: %q", c)
	}
}
