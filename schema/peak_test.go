package schema_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestHostilePeakMemory holds what every hostile payload and schema takes at most, as the
// operating system counts it, garbage included. -v writes the rows of docs/benchmarks.md.
func TestHostilePeakMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIPPED: the race detector takes memory of its own")
	}
	if !schematest.InOwnProcess(t) {
		return
	}
	const fixed = 32 << 20 // what the collector leaves before it first runs, and freed pages
	for _, group := range []struct {
		kind  string
		cases []hostileCase
	}{
		{"payloads of numbers", hostileNumbers()},
		{"payloads of text", hostileTexts()},
		{"payloads of arrays and objects", hostileContainers()},
		{"payloads against recursive and combined schemas", hostileCombinations()},
		{"payloads that take many steps", costly()},
	} {
		peaks := schematest.Peaks{Kind: group.kind}
		for _, c := range group.cases {
			s := schematest.MustCompile(t, c.schema).WithLimits(schema.Limits{MaxDepth: c.depth})
			peaks.Measure(t, c.name, len(c.payload), fixed, 128, func() {
				if got := s.Check(c.payload); got.Verdict != c.want {
					t.Errorf("%s: %v, want %v", c.name, got.Verdict, c.want)
				}
			})
		}
		t.Log(peaks.Row())
	}
	peaks := schematest.Peaks{Kind: "schemas of the subset"}
	all := published()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		src := all[name]
		peaks.Measure(t, name, len(src), fixed, 256, func() {
			if _, err := schema.CompileWithin(t.Context(), []byte(src), schema.CompileOptions{}, schema.CompileLimits{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	t.Log(peaks.Row())
	peaks = schematest.Peaks{Kind: "schemas of the full profile"}
	for _, c := range publishedInFull() {
		peaks.Measure(t, c.name, len(c.src), 256<<20, 128, func() { // the bound on schemas is the same for all documents
			if _, err := schema.CompileWith([]byte(c.src), schema.CompileOptions{Profile: schema.ProfileFull}); (err != nil) != c.refused {
				t.Errorf("%s: %.200v", c.name, err)
			}
		})
	}
	t.Log(peaks.Row())
}
