package contain_test

import (
	"context"
	"testing"

	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestHostilePeakMemory holds what every hostile pair takes at most, as the operating
// system counts it, garbage included. -v writes the rows of docs/benchmarks.md.
func TestHostilePeakMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIPPED: the race detector takes memory of its own")
	}
	if !schematest.InOwnProcess(t) {
		return
	}
	peaks := schematest.Peaks{Kind: "pairs of schemas, compared"}
	for _, c := range hostilePairs() {
		a, b := schematest.MustCompile(t, c.a), schematest.MustCompile(t, c.b)
		// The budget is in steps, whatever the length of the schemas.
		peaks.Measure(t, c.name, len(c.a)+len(c.b), 192<<20, 0, func() {
			if got := contain.IsSubschemaWithin(context.Background(), a, b, contain.Budget{}); c.want != 0 && got.Answer != c.want {
				t.Errorf("%s: %v, want %v", c.name, got.Answer, c.want)
			}
		})
	}
	t.Log(peaks.Row())
}
