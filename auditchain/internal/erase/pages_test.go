package erase

import (
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain/internal/record"
)

func TestRedactionTakesItsRecordsInSteps(t *testing.T) {
	t.Parallel()
	r := record.Redaction{Ranges: [][2]int64{{1, 10}, {20, 2000}, {5000, 5000}, {6000, 9000}}}
	for _, first := range []int64{1, 5, 15, 20, 4000, 7000, 9001} {
		var want []int64
		for _, run := range r.Ranges {
			for seq := run[0]; seq <= run[1]; seq++ {
				if seq >= first {
					want = append(want, seq)
				}
			}
		}
		var got []int64
		for rest, limit := (numbers{r.Ranges, first}), int64(1); ; limit = limit%700 + 97 {
			var step []int64
			if step, rest = rest.take(limit); len(step) == 0 {
				break
			}
			if int64(len(step)) > limit {
				t.Fatalf("a step of %d records, at most %d", len(step), limit)
			}
			got = append(got, step...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %d: %d records in steps, %d in ranges", first, len(got), len(want))
		}
	}
}

// The steps of an erasure become as large as they may without holding up appends.
func TestPaceFollowsTheDisk(t *testing.T) {
	t.Parallel()
	p := newPace()
	for range 100 {
		p.took(stepTime / 100)
	}
	if p.size != maxStep {
		t.Errorf("on a quick disk, steps of %d", p.size)
	}
	p.took(stepTime * 3 / 2)
	if p.size >= maxStep || p.size < maxStep/2 {
		t.Errorf("after a step that took half as long again, steps of %d", p.size)
	}
	for range 10 {
		p.took(time.Minute)
	}
	if p.size != minStep {
		t.Errorf("on a slow disk, steps of %d", p.size)
	}
}
