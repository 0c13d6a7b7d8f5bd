package schema_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// published are schemas that a peer could publish to hurt.
func published() map[string]string {
	refs := schematest.List(60, func(i int) string { return fmt.Sprintf(`{"$ref":"#/definitions/d%d"}`, i) })
	object := func(i int) string {
		return schematest.Object(60, func(j int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/d%d"}`, j, (i+j)%60) })
	}
	// Each union looks for a property that tells its branches apart, in vain.
	branch := schematest.Object(200, func(i int) string { return fmt.Sprintf(`"p%d":{"const":"c"}`, i) })
	return map[string]string{
		"60 definitions that hold one another": `{"$ref":"#/definitions/d0","definitions":` +
			schematest.Object(60, func(i int) string { return fmt.Sprintf(`"d%d":{"properties":%s}`, i, object(i)) }) + `}`,
		"60 definitions whose elements are any of them": `{"$ref":"#/definitions/d0","definitions":` +
			schematest.Object(60, func(i int) string { return fmt.Sprintf(`"d%d":{"items":{"oneOf":%s},"minItems":%d}`, i, refs, i) }) + `}`,
		"an enum of 1.9 MB":            `{"enum":` + schematest.List(270_000, func(i int) string { return fmt.Sprint(i) }) + `}`,
		"an enum of 1.9 MB of strings": `{"enum":` + schematest.List(170_000, func(i int) string { return fmt.Sprintf(`"v%07d"`, i) }) + `}`,
		"unions of what cannot be told apart": `{"definitions":{"a":{"properties":` + branch + `},"b":{"properties":` + branch + `}},"properties":` +
			schematest.Object(2000, func(i int) string {
				return fmt.Sprintf(`"u%d":{"oneOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/b"}]}`, i)
			}) + `}`,
	}
}

// TestCompileWithinItsBudget compiles what fits the budget, in memory that grows with
// the source alone, and gives up what does not, with an error of its own.
func TestCompileWithinItsBudget(t *testing.T) {
	for name, src := range published() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := schema.CompileWithin(t.Context(), []byte(src), schema.CompileLimits{}); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes: %.0f bytes allocated for each", len(src), float64(allocated)/float64(len(src)))
			if most := uint64(200*len(src) + 1<<20); allocated > most {
				t.Errorf("%d bytes allocated for %d", allocated, len(src))
			}
			_, err := schema.CompileWithin(t.Context(), []byte(src), schema.CompileLimits{MaxSteps: len(src) + len(src)/20})
			var exceeded *schema.ExceededError
			if !errors.As(err, &exceeded) || exceeded.Cause != nil || !strings.Contains(err.Error(), "compiling the schema takes more than") {
				t.Errorf("with few steps: %v", err)
			}
			_, err = schema.CompileWithin(t.Context(), []byte(src), schema.CompileLimits{MaxBytes: len(src) - 1})
			if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), fmt.Sprint(len(src)-1, " bytes")) {
				t.Errorf("a byte too long: %v", err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err = schema.CompileWithin(ended, []byte(src), schema.CompileLimits{}); !errors.Is(err, context.Canceled) {
				t.Errorf("after the context: %v", err)
			}
		})
	}
}
