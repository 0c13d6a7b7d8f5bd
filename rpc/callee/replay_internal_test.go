package callee

import (
	"fmt"
	"testing"
	"time"
)

func TestReplayCacheForgetsWhatIsOver(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newReplayCache()
	for i := range 1000 {
		id := fmt.Sprint(i)
		until := now.Add(time.Duration(i%60) * time.Second)
		if first, full := c.take("agent://a", id, until, now); !first || full {
			t.Fatalf("%d: first %v, full %v", i, first, full)
		}
		if first, _ := c.take("agent://a", id, until, now); first {
			t.Fatalf("%d was taken twice", i)
		}
	}
	if first, _ := c.take("agent://b", "0", now, now); !first {
		t.Error("another peer's message of the same id is taken for a repetition")
	}
	for _, step := range []struct {
		after time.Duration
		most  int
	}{{30 * time.Second, 600}, {62 * time.Second, 1}, {time.Hour, 1}} {
		then := now.Add(step.after)
		c.take("agent://a", "at "+then.String(), then, then)
		if n := c.len(); n > step.most {
			t.Errorf("after %s it remembers %d, want at most %d", step.after, n, step.most)
		}
	}
	// A clock that goes back forgets nothing that may still come.
	late := now.Add(time.Hour)
	c.take("agent://a", "late", late.Add(time.Minute), late)
	c.take("agent://a", "early", now.Add(time.Minute), now)
	if first, _ := c.take("agent://a", "late", late.Add(time.Minute), late); first {
		t.Error("a clock that went back made it forget")
	}
}

func TestReplayCacheIsBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newReplayCache()
	for i := range uint64(maxRemembered) {
		c.taken[i] = struct{}{}
	}
	if first, full := c.take("agent://a", "one more", now.Add(time.Second), now); first || !full {
		t.Errorf("first %v, full %v", first, full)
	}
}
