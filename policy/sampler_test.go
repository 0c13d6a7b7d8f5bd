package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/policy"
)

func TestSamplerTellsOfEveryEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.IntRange(1, 10).Draw(t, "per second")
		s := policy.Sampler{PerSecond: perSecond}
		now := time.Unix(1_800_000_000, 0)
		start, events, told, taken := now, int64(0), int64(0), 0
		for range rapid.IntRange(1, 200).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
			events++
			take, unrecorded := s.Take(now)
			if take {
				told += 1 + unrecorded
				taken++
			}
		}
		if most := float64(perSecond)*(1+now.Sub(start).Seconds()) + 1; float64(taken) > most {
			t.Fatalf("%d of %d were taken in %s, at most %.0f should be", taken, events, now.Sub(start), most)
		}
		take, unrecorded := s.Take(now.Add(time.Hour))
		if told += 1 + unrecorded; !take || told != events+1 {
			t.Fatalf("the records tell of %d of %d", told, events+1)
		}
	})
}

// The first events of a flood all get a record; from then on, as many a second.
func TestSamplerTakesTheFirst(t *testing.T) {
	s, now := policy.Sampler{PerSecond: 3}, time.Unix(1_800_000_000, 0)
	take := func(want bool, wantUnrecorded int64) {
		t.Helper()
		if got, unrecorded := s.Take(now); got != want || unrecorded != wantUnrecorded {
			t.Errorf("at %s: taken %v with %d unrecorded, want %v and %d", now, got, unrecorded, want, wantUnrecorded)
		}
	}
	for range 3 {
		take(true, 0)
	}
	take(false, 0)
	take(false, 0)
	now = now.Add(time.Second)
	take(true, 2)
	take(true, 0)
	take(true, 0)
	take(false, 0)
	// A clock that steps back earns nothing.
	now = now.Add(-time.Hour)
	take(false, 0)
	now = now.Add(time.Hour)
	take(false, 0)
}

func TestSamplerOfNothing(t *testing.T) {
	var s policy.Sampler
	if take, _ := s.Take(time.Now()); take {
		t.Error("the zero Sampler takes something")
	}
}
