package schema_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

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
			if _, err := schema.CompileWithin(t.Context(), []byte(src), schema.CompileOptions{}, schema.CompileLimits{}); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes: %.0f bytes allocated for each", len(src), float64(allocated)/float64(len(src)))
			if most := uint64(200*len(src) + 1<<20); allocated > most {
				t.Errorf("%d bytes allocated for %d", allocated, len(src))
			}
			_, err := schema.CompileWithin(t.Context(), []byte(src), schema.CompileOptions{}, schema.CompileLimits{MaxSteps: len(src) + len(src)/20})
			var exceeded *schema.ExceededError
			if !errors.As(err, &exceeded) || exceeded.Cause != nil || !strings.Contains(err.Error(), "compiling the schema takes more than") {
				t.Errorf("with few steps: %v", err)
			}
			_, err = schema.CompileWithin(t.Context(), []byte(src), schema.CompileOptions{}, schema.CompileLimits{MaxBytes: len(src) - 1})
			if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), fmt.Sprint(len(src)-1, " bytes")) {
				t.Errorf("a byte too long: %v", err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err = schema.CompileWithin(ended, []byte(src), schema.CompileOptions{}, schema.CompileLimits{}); !errors.Is(err, context.Canceled) {
				t.Errorf("after the context: %v", err)
			}
		})
	}
}

// TestTreeIsPaidFor gives a schema of many small values too few steps for them: the work
// ends before they take memory, whatever keyword they belong to.
func TestTreeIsPaidFor(t *testing.T) {
	for _, keyword := range []string{"default", "enum", "unknown"} {
		src := []byte(`{"` + keyword + `":` + schematest.List(1<<18, func(int) string { return "1" }) + `}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := schema.CompileWithin(t.Context(), src, schema.CompileOptions{}, schema.CompileLimits{MaxSteps: len(src) + 10_000})
		runtime.ReadMemStats(&after)
		var exceeded *schema.ExceededError
		if took := after.TotalAlloc - before.TotalAlloc; !errors.As(err, &exceeded) || took > uint64(4*len(src)+1<<20) {
			t.Errorf("%s: %.100v, with %d bytes allocated for %d", keyword, err, took, len(src))
		}
	}
	deep := []byte(`{"default":` + strings.Repeat(`[{"a":`, 100) + "1" + strings.Repeat(`},"b"]`, 100) + `}`)
	for steps := len(deep); ; steps += 3 { // wherever it ends
		_, err := schema.CompileWithin(t.Context(), deep, schema.CompileOptions{}, schema.CompileLimits{MaxSteps: steps})
		if err == nil {
			break
		}
		var exceeded *schema.ExceededError
		if !errors.As(err, &exceeded) {
			t.Fatalf("%d steps: %v", steps, err)
		}
	}
}

// TestPatternsHaveABudget gives a schema fewer steps for its patterns: those that are small
// still compile, and the fault is at the first that is not.
func TestPatternsHaveABudget(t *testing.T) {
	src := []byte(`{"properties":{"a":{"pattern":"^[a-z]$"},"b":{"pattern":"[ab]{0,40}c[ab]{0,400}d"}}}`)
	if _, err := schema.CompileWithin(t.Context(), src, schema.CompileOptions{}, schema.CompileLimits{}); err != nil {
		t.Fatal(err)
	}
	_, err := schema.CompileWithin(t.Context(), src, schema.CompileOptions{}, schema.CompileLimits{MaxPatternSteps: 5000})
	var refusal *schema.CompileError
	if !errors.As(err, &refusal) || len(refusal.Faults) != 1 || refusal.Faults[0].Pointer != "/properties/b/pattern" ||
		!strings.Contains(err.Error(), "the patterns of the schema are too large together") {
		t.Errorf("%v", err)
	}
}

// publishedInFull are schemas of the full profile that a peer could publish to hurt, and
// whether they are refused for that.
func publishedInFull() []hostileSchema {
	definitions := func(n int, format string) string {
		return schematest.Object(n, func(i int) string { return strings.ReplaceAll(format, "%", fmt.Sprint(i)) })
	}
	list := func(n int, format string) string {
		return schematest.List(n, func(i int) string { return strings.ReplaceAll(format, "%", fmt.Sprint(i)) })
	}
	long := strings.Repeat("n", 1<<20)
	return []hostileSchema{
		{"a scope with 10,000 anchors, entered by each", `{"$dynamicRef":"#a1","$defs":` + definitions(10_000, `"d%":{"$dynamicAnchor":"a%"}`) + `}`, false},
		{"200 scopes, each with a tree of its own", `{"$id":"https://x/","anyOf":` + list(200, `{"$ref":"r%"}`) + `,"$defs":{"tree":{"$id":"tree","$dynamicAnchor":"t","anyOf":` +
			list(9_000, `{"items":{"$dynamicRef":"#t"}}`) + `},` + definitions(200, `"r%":{"$id":"r%","$dynamicAnchor":"t","$ref":"tree"}`)[1:] + `}`, true},
		{"60,000 references", `{"anyOf":` + list(60_000, `{"$ref":"#/$defs/d%"}`) + `,"$defs":` + definitions(60_000, `"d%":{"type":"null"}`) + `}`, false},
		{"20,000 long URIs", `{"$id":"https://x/` + strings.Repeat("x", 100_000) + `/","$defs":` + definitions(20_000, `"d%":{"$id":"d%"}`) + `}`, true},
		{"100,000 misspelled keywords", definitions(100_000, `"propertys%":1`), false},
		{"a budget that ends between a reference and its target", `{"$dynamicRef":"#","$ref":"#/x/n` + long + `","x":{"n` + long + `":` + definitions(2000, `"p%":1`) + `}}`, true},
	}
}

// hostileSchema is a schema that a peer could publish to hurt.
type hostileSchema struct {
	name, src string
	refused   bool
}

// TestFullCompilesWithinItsBudget compiles or refuses what a peer publishes for the full
// profile before it takes long: dynamic scopes, references and URIs multiply its parts.
func TestFullCompilesWithinItsBudget(t *testing.T) {
	for _, c := range publishedInFull() {
		start := time.Now()
		_, err := schema.CompileWith([]byte(c.src), schema.CompileOptions{Profile: schema.ProfileFull})
		if c.refused != (err != nil) || c.refused && !strings.Contains(err.Error(), "too long to compile") && !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %.200v", c.name, err)
		}
		// Two seconds, on an idle machine; the race detector and other work take their share.
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("%s: took %v", c.name, took)
		}
	}
}

// TestFullCompilesWithinLimits gives schemas of the full profile too little: they are
// refused with an error of its own, and compile with enough.
func TestFullCompilesWithinLimits(t *testing.T) {
	opts := schema.CompileOptions{Profile: schema.ProfileFull, Dialect: schema.DialectDraft07}
	src := []byte(`{"items":[{"type":"string"},` + schematest.List(500, func(i int) string { return fmt.Sprintf(`{"minLength":%d}`, i) })[1:] + `}`)
	s, err := schema.CompileWithin(t.Context(), src, opts, schema.CompileLimits{})
	if err != nil || s.Valid([]byte(`[1]`)) || s.Profile() != schema.ProfileFull {
		t.Fatalf("with enough: %v", err)
	}
	var exceeded *schema.ExceededError
	for _, l := range []schema.CompileLimits{{MaxBytes: len(src) - 1}, {MaxSteps: len(src) + 100}, {MaxSteps: len(src) + 8000}} {
		if _, err := schema.CompileWithin(t.Context(), src, opts, l); !errors.As(err, &exceeded) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, profile := range []schema.Profile{schema.ProfileFull, schema.ProfileSubset} {
		opts.Profile = profile
		if _, err := schema.CompileWithin(ended, []byte(`{}`), opts, schema.CompileLimits{}); !errors.Is(err, context.Canceled) {
			t.Errorf("after the context: %v", err)
		}
	}
}

// TestFaultsArePaidFor refuses schemas whose faults would take far more room than they do:
// a name of a megabyte is in the pointer to everything behind it, and in hints.
func TestFaultsArePaidFor(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	object := func(format string) string {
		return schematest.Object(2000, func(i int) string { return fmt.Sprintf(format, i) })
	}
	list := func(n int, item string) string { return schematest.List(n, func(int) string { return item }) }
	for name, src := range map[string]string{
		"properties":    `{"properties":{"` + name + `":{"properties":` + object(`"p%d":{}`) + `}}}`,
		"keywords":      `{"properties":{"` + name + `":` + object(`"p%d":1`) + `}}`,
		"names":         `{"properties":{"` + name + `":{"required":` + list(2000, `"p"`) + `}}}`,
		"hints":         `{"anyOf":` + list(50_000, `{"$ref":"#/definitions/x"}`) + `,"definitions":{"` + name + `":{}}}`,
		"beside $ref":   `{"anyOf":` + list(2, `{"$ref":"#","`+name+`":1}`) + `}`,
		"many of a few": `{"type":` + list(2_000_000, "1") + `}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := schema.CompileWithin(t.Context(), []byte(src), schema.CompileOptions{}, schema.CompileLimits{})
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || took > 768 {
			t.Errorf("%s: %d MB allocated; %.100v", name, took, err)
		}
		var refusal *schema.CompileError
		if errors.As(err, &refusal) && len(refusal.Faults) > 1001 {
			t.Errorf("%s: %d faults are listed", name, len(refusal.Faults))
		}
		if refusal != nil && len(refusal.Faults[0].Message+refusal.Faults[0].Hint) > 1000 {
			t.Errorf("%s: %d bytes of a message", name, len(refusal.Faults[0].Message))
		}
	}
}
