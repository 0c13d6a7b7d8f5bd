package contain_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// series writes n things, separated by commas.
func series(n int, format func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = format(i)
	}
	return strings.Join(parts, ",")
}

func tagged(i int, extra string) string {
	return fmt.Sprintf(`{"type":"object","required":["kind","v"],"properties":{"kind":{"const":"k%d"},"v":{"type":"integer","minimum":%d},"w":{"type":"string"}%s}}`, i, i, extra)
}

// nestedOneOf nests oneOf with overlapping branches.
func nestedOneOf(levels int, top string) string {
	if levels == 0 {
		return top
	}
	inner := nestedOneOf(levels-1, top)
	return fmt.Sprintf(`{"oneOf":[{"type":"object","properties":{"a":%[1]s}},{"type":"object","properties":{"b":%[1]s},"required":["b"]},{"type":"object","required":["c"]},{"type":"object","properties":{"d":%[1]s}}]}`, inner)
}

// grammar is a recursive grammar of n kinds of node.
func grammar(n int, leaf string) string {
	arms := series(n, func(i int) string {
		return fmt.Sprintf(`{"type":"object","required":["op","args"],"additionalProperties":false,"properties":{"op":{"const":"op%d"},"args":{"type":"array","items":{"$ref":"#/definitions/e"},"minItems":%d}}}`, i, i%3)
	})
	return fmt.Sprintf(`{"definitions":{"e":{"oneOf":[%s,%s]}},"allOf":[{"$ref":"#/definitions/e"}]}`, leaf, arms)
}

// untagged is a recursive union whose arms only differ below.
func untagged(n int, leaf string) string {
	arms := series(n, func(i int) string {
		return fmt.Sprintf(`{"type":"object","required":["x%d"],"properties":{"x%d":{"$ref":"#/definitions/e"},"x%d":{"$ref":"#/definitions/e"}}}`, i, i, (i+1)%n)
	})
	return fmt.Sprintf(`{"definitions":{"e":{"oneOf":[%s,%s]}},"allOf":[{"$ref":"#/definitions/e"}]}`, leaf, arms)
}

// adjacent is a union of n ranges, each as wide and next to the last.
func adjacent(of, kind string, n, wide int) string {
	return fmt.Sprintf(`{%q:[%s]}`, of, series(n, func(i int) string {
		return fmt.Sprintf(`{"type":%q,"minimum":%d,"maximum":%d}`, kind, i*wide, i*wide+wide-1)
	}))
}

func member(of string) string {
	return `{"type":"object","required":["n"],"properties":{"n":` + of + `}}`
}

// nestedRanges splits a range into four, and each of these again.
func nestedRanges(levels, low, high int, kind string) string {
	if levels == 0 {
		return fmt.Sprintf(`{"type":%q,"minimum":%d,"maximum":%d}`, kind, low, high)
	}
	wide := (high - low + 1) / 4
	return `{"oneOf":[` + series(4, func(i int) string {
		return nestedRanges(levels-1, low+i*wide, low+i*wide+wide-1, kind)
	}) + `]}`
}

// nestedTags is a union of four tagged objects, whose members are such unions.
func nestedTags(levels int, leaf string) string {
	if levels == 0 {
		return leaf
	}
	return `{"oneOf":[` + series(4, func(i int) string {
		return fmt.Sprintf(`{"type":"object","required":["kind","in"],"properties":{"kind":{"const":"k%d"},"in":%s}}`, i, nestedTags(levels-1, leaf))
	}) + `]}`
}

// entangled are n definitions, each of which holds any of them.
func entangled(n int, leaf string) string {
	refs := series(n, func(i int) string { return fmt.Sprintf(`{"$ref":"#/definitions/d%d"}`, i) })
	return `{"$ref":"#/definitions/d0","definitions":{` + series(n, func(i int) string {
		return fmt.Sprintf(`"d%[1]d":{"type":"object","required":["x%[1]d"],"properties":{"x%[1]d":{"oneOf":[%[2]s,%[3]s]}}}`, i, leaf, refs)
	}) + `}}`
}

// hostilePair is a question that a peer could ask by what it publishes.
type hostilePair struct {
	name, a, b string
	want       contain.Answer // 0 leaves it open
}

func hostilePairs() []hostilePair {
	choices := func(n int, x string) string {
		return fmt.Sprintf(`{"type":"object","allOf":[%s]}`, series(n, func(i int) string {
			return fmt.Sprintf(`{"anyOf":[{"properties":{"p%d":{"const":%s}},"required":["p%d"]},{"properties":{"q%d":{"const":%s}},"required":["q%d"]}]}`, i, x, i, i, x, i)
		}))
	}
	crossed := fmt.Sprintf(`{"anyOf":[%s]}`, series(14, func(i int) string {
		return fmt.Sprintf(`{"properties":{"p%d":{"const":1},"q%d":{"const":1}},"required":["p%d","q%d"]}`, i, (i+5)%14, i, (i+5)%14)
	}))
	deep := func(n int, leaf string) string {
		return strings.Repeat(`{"type":"object","required":["x"],"properties":{"x":`, n) + leaf + strings.Repeat(`}}`, n)
	}
	numbers := func(n int) string {
		return `{"enum":[` + series(n, func(i int) string { return fmt.Sprint(i * 3) }) + `]}`
	}
	wide := func(n int, of string) string {
		return `{"type":"object","properties":{` + series(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"%s"}`, i, of) }) + `}}`
	}
	return []hostilePair{
		{"union of 60 tagged objects, one narrower", `{"oneOf":[` + series(60, func(i int) string { return tagged(i, "") }) + `]}`,
			`{"oneOf":[` + series(60, func(i int) string { return tagged(60-i, `,"z":{"type":"null"}`) }) + `]}`, contain.Refuted},
		{"union of 60 tagged objects, all wider", `{"oneOf":[` + series(60, func(i int) string { return tagged(i, `,"z":{"type":"null"}`) }) + `]}`,
			`{"oneOf":[` + series(61, func(i int) string { return tagged(i, "") }) + `]}`, contain.Proven},
		{"2^16 combinations, contained", choices(16, "1"), choices(16, `1`), contain.Proven},
		{"2^16 combinations, wider numbers", choices(16, "1"), strings.ReplaceAll(choices(16, "1"), `"const":1`, `"enum":[1,2]`), contain.Proven},
		{"2^14 combinations against crossed ones", choices(14, "1"), crossed, 0},
		{"nested oneOf", nestedOneOf(3, `{"type":"integer"}`), nestedOneOf(3, `{"type":"number"}`), 0},
		{"nested oneOf, deeper", nestedOneOf(5, `{"type":"integer"}`), nestedOneOf(5, `{"type":"number"}`), 0},
		{"recursive grammar of 12 kinds", grammar(12, `{"type":"integer"}`), grammar(12, `{"type":"number"}`), contain.Proven},
		{"recursive grammar, one kind gone", grammar(12, `{"type":"number"}`), grammar(11, `{"type":"number"}`), contain.Refuted},
		{"recursive untagged union", untagged(12, `{"type":"integer"}`), untagged(12, `{"type":"number"}`), 0},
		{"nested 500 deep", deep(500/2, `{"type":"integer"}`), deep(500/2, `{"type":"number"}`), contain.Proven},
		{"nested 500 deep, narrower", deep(500/2, `{"type":"number"}`), deep(500/2, `{"type":"integer"}`), contain.Refuted},
		{"enum of 10 000", numbers(10_000), numbers(10_001), contain.Proven},
		{"enum of 10 000, narrower", numbers(10_001), numbers(10_000), contain.Refuted},
		{"2 000 properties", wide(2_000, "integer"), wide(2_000, "number"), contain.Proven},
		{"exponential automaton", `{"type":"string","pattern":"^(a|b)*a(a|b){18}$"}`, `{"type":"string","pattern":"^(a|b)*b(a|b){18}$"}`, contain.Refuted},
		{"exponential automata that must be walked", `{"type":"string","pattern":"^(a|b)*a(a|b){18}$"}`, `{"type":"string","pattern":"^(aa|ab|ba|bb)*(a|b){0,1}$","not":{"pattern":"^(a|b)*a(a|b){17}c$"}}`, 0},
		{"long repetition", `{"type":"string","pattern":"^(x{0,30}y{0,30}){0,15}$"}`, `{"type":"string","pattern":"^[xy]*$"}`, contain.Proven},
		{"many wildcards", `{"type":"string","pattern":"a.*b.*c.*d.*e.*f.*g"}`, `{"type":"string","pattern":"b.*d.*f"}`, contain.Proven},
		{"eight patterns at once", `{"type":"string","allOf":[` + series(8, func(i int) string { return fmt.Sprintf(`{"pattern":"%c.{%d}%c"}`, 'a'+i, i+1, 'b'+i) }) + `]}`, `{"pattern":"zz"}`, 0},
		{"long strings by pattern", `{"type":"string","pattern":"^[a-z]*$","minLength":9000}`, `{"type":"string","pattern":"^[a-y]*$"}`, 0},
		{"200 different integers", `{"type":"array","items":{"type":"integer"},"minItems":200,"uniqueItems":true}`, `{"type":"array","maxItems":199}`, contain.Refuted},
		{"different elements of a large product", `{"type":"array","minItems":100,"uniqueItems":true,"items":{"type":"object","additionalProperties":false,"required":["a","b","c","d","e","f","g"],"properties":{` +
			series(7, func(i int) string { return fmt.Sprintf(`"%c":{"type":"boolean"}`, 'a'+i) }) + `}}}`, `{"maxItems":99}`, 0},
		{"more different elements than there are", `{"type":"array","minItems":1e19,"uniqueItems":true,"items":{"type":"integer"}}`, `{"type":"string"}`, contain.Undecided},
		{"300 elements, one array ruled out", `{"type":"array","minItems":300,"not":{"const":[1]}}`, `{"items":{"type":"integer"}}`, contain.Refuted},
		{"union of 150 tagged objects", `{"oneOf":[` + series(150, func(i int) string { return tagged(i, `,"z":{"type":"null"}`) }) + `]}`,
			`{"oneOf":[` + series(151, func(i int) string { return tagged(i, "") }) + `]}`, 0},
		{"union of 200 tagged objects, all wider", `{"oneOf":[` + series(200, func(i int) string { return tagged(i, `,"z":{"type":"null"}`) }) + `]}`,
			`{"oneOf":[` + series(201, func(i int) string { return tagged(i, "") }) + `]}`, contain.Proven},
		{"union of 200 tagged objects, narrower", `{"oneOf":[` + series(200, func(i int) string { return tagged(i, "") }) + `]}`,
			`{"anyOf":[` + series(200, func(i int) string { return tagged(i, `,"z":{"type":"null"}`) }) + `]}`, contain.Refuted},
		{"500 adjacent ranges, and the whole", adjacent("oneOf", "integer", 500, 10), `{"type":"integer","minimum":0,"maximum":4999}`, contain.Proven},
		{"500 adjacent ranges, and less", adjacent("oneOf", "integer", 500, 10), `{"type":"integer","minimum":0,"maximum":4998}`, contain.Refuted},
		{"the whole, and 500 adjacent ranges", `{"type":"integer","minimum":0,"maximum":4999}`, adjacent("oneOf", "integer", 500, 10), contain.Proven},
		{"more than 500 adjacent ranges", `{"type":"integer","minimum":0,"maximum":5000}`, adjacent("oneOf", "integer", 500, 10), contain.Refuted},
		{"fractions between 500 adjacent ranges", `{"type":"number","minimum":0,"maximum":4999}`, adjacent("anyOf", "number", 500, 10), contain.Refuted},
		{"500 adjacent ranges in 700 others", adjacent("oneOf", "integer", 500, 7), adjacent("anyOf", "integer", 700, 5), contain.Proven},
		{"500 adjacent ranges of a member", member(adjacent("oneOf", "integer", 500, 10)), member(`{"type":"integer","minimum":0,"maximum":4999}`), contain.Proven},
		{"a member, and 500 adjacent ranges", member(`{"type":"integer","minimum":0,"maximum":4999}`), member(adjacent("oneOf", "integer", 500, 10)), contain.Proven},
		{"nested 4 by 4 oneOf, overlapping", nestedOneOf(4, `{"type":"integer"}`), nestedOneOf(4, `{"type":"number"}`), contain.Refuted},
		{"nested 4 by 4 oneOf of ranges", nestedRanges(4, 0, 255, "integer"), `{"type":"integer","minimum":0,"maximum":255}`, contain.Proven},
		{"a range, and nested 4 by 4 oneOf", `{"type":"integer","minimum":0,"maximum":255}`, nestedRanges(4, 0, 255, "integer"), contain.Proven},
		{"nested 4 by 4 oneOf of tags, wider", nestedTags(4, `{"type":"integer"}`), nestedTags(4, `{"type":"number"}`), contain.Proven},
		{"nested 4 by 4 oneOf of tags, narrower", nestedTags(4, `{"type":"number"}`), nestedTags(4, `{"type":"integer"}`), contain.Refuted},
		{"60 definitions that lead to one another", entangled(60, `{"type":"integer"}`), entangled(60, `{"type":"number"}`), 0},
		{"a gigabyte of elements", `{"type":"array","minItems":1000000000}`, `{"type":"array","items":{"type":"integer"}}`, 0},
		{"numbers with huge exponents", `{"type":"number","minimum":1e999999999999,"maximum":2e999999999999}`, `{"type":"integer"}`, 0},
		{"formats against patterns", `{"type":"string","format":"email"}`, `{"type":"string","pattern":"@"}`, contain.Proven},
		{"formats against each other", `{"type":"string","format":"date-time"}`, `{"type":"string","format":"uri-reference"}`, 0},
	}
}

func TestContainmentWithinBudget(t *testing.T) {
	for _, test := range hostilePairs() {
		t.Run(test.name, func(t *testing.T) {
			a, b := schematest.MustCompile(t, test.a), schematest.MustCompile(t, test.b)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			got := contain.IsSubschemaWithin(context.Background(), a, b, contain.Budget{})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			t.Logf("%s %s in %v, %d KiB allocated", got.Answer, got.Reason, took, (after.TotalAlloc-before.TotalAlloc)>>10)
			if test.want != 0 && got.Answer != test.want {
				t.Errorf("%s (%s), want %s; witness %.200s", got.Answer, got.Reason, test.want, got.Witness)
			}
			if got.Answer == contain.Refuted && (!a.Valid(got.Witness) || b.Valid(got.Witness)) {
				t.Errorf("%.200s is no witness", got.Witness)
			}
			if spent := after.TotalAlloc - before.TotalAlloc; spent > 256<<20 {
				t.Errorf("allocated %d MiB", spent>>20)
			}
		})
	}
}

// TestStepsCountWhatTakesTime asks what takes many times longer than its steps if a step
// is not charged for the digits or the members that it looks at.
func TestStepsCountWhatTakesTime(t *testing.T) {
	// The form of each link of the chain shows one round later than that of the next, and
	// each round reads all properties.
	chain := func(kind string) string {
		const links = 1000
		return `{"$ref":"#/definitions/d0","definitions":{"wide":{"properties":{` +
			series(20_000, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/d0"}`, i) }) + `}},` +
			series(links, func(i int) string { return fmt.Sprintf(`"d%d":{"items":{"$ref":"#/definitions/d%d"}}`, i, i+1) }) +
			fmt.Sprintf(`,"d%d":{"type":%q,"not":{"items":{"$ref":"#/definitions/wide"}}}}}`, links, kind)
	}
	for _, pair := range [][2]string{
		{`{"type":"number","minimum":0,"maximum":1}`, `{"multipleOf":1e-999999}`},
		{chain("string"), chain("number")},
	} {
		a, b := mustFull(t, pair[0]), mustFull(t, pair[1])
		start := time.Now()
		got := contain.IsSubschema(a, b)
		if took := time.Since(start); took > 20*time.Second { // half a second, on an idle machine
			t.Errorf("%.60s: %s after %v", pair[0], got.Answer, took)
		}
	}
}

func TestBudgetEnds(t *testing.T) {
	arms := series(40, func(i int) string { return tagged(i, `,"z":{"type":"null"}`) })
	a, b := schematest.MustCompile(t, `{"oneOf":[`+arms+`]}`), schematest.MustCompile(t, `{"anyOf":[`+series(40, func(i int) string { return tagged(i, "") })+`]}`)
	got := contain.IsSubschemaWithin(context.Background(), a, b, contain.Budget{Steps: 500})
	if got.Answer != contain.Undecided || got.Reason != contain.ReasonSteps {
		t.Errorf("with few steps: %+v", got)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	got = contain.IsSubschemaWithin(ended, a, b, contain.Budget{})
	if got.Answer != contain.Undecided || got.Reason != contain.ReasonTime {
		t.Errorf("after the context ended: %+v", got)
	}
	var doubt *contain.UndecidedError
	if _, err := contain.SampleWithin(ended, a, contain.Budget{Steps: 3}); !errors.As(err, &doubt) {
		t.Errorf("sample with few steps: %v", err)
	}
	findings := contain.ExplainWithin(ended, a, b, contain.Budget{})
	if !slices.ContainsFunc(findings, func(f contain.Finding) bool { return f.Rule == contain.RuleUndecided && f.Breaking }) {
		t.Errorf("nothing says that it is undecided: %v", findings)
	}
}

// TestBudgetEndsInALargeEnum ends the budget while the schemas are still being
// read. Two enums that begin alike must not pass for equal then.
func TestBudgetEndsInALargeEnum(t *testing.T) {
	numbers := func(last int) *schema.Schema {
		return schematest.MustCompile(t, `{"enum":[`+series(5000, func(i int) string { return fmt.Sprint(i) })+`,`+fmt.Sprint(last)+`]}`)
	}
	a, b := numbers(-1), numbers(-2)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx    context.Context
		budget contain.Budget
		reason contain.Reason
	}{
		{context.Background(), contain.Budget{Steps: 1000, Time: time.Minute}, contain.ReasonSteps},
		{ended, contain.Budget{}, contain.ReasonTime},
	} {
		if got := contain.IsSubschemaWithin(c.ctx, a, b, c.budget); got.Answer != contain.Undecided || got.Reason != c.reason {
			t.Errorf("got %+v, want undecided for %s", got, c.reason)
		}
		findings := contain.ExplainWithin(c.ctx, a, b, c.budget)
		if !slices.ContainsFunc(findings, func(f contain.Finding) bool { return f.Breaking }) {
			t.Errorf("no finding breaks: %v", findings)
		}
		var doubt *contain.UndecidedError
		if v, err := contain.SampleWithin(c.ctx, a, c.budget); err != nil && !errors.As(err, &doubt) {
			t.Errorf("sample: %s, %v", v, err)
		}
	}
	if got := contained(a, b); got.Answer != contain.Refuted || string(got.Witness) != "-1" {
		t.Errorf("with the whole budget: %+v", got)
	}
}

// TestLimitsOfTheValidatorProveNothing asks about a literal that takes the validator more
// steps than it may: that it was not found to pass is no proof that it fails.
func TestLimitsOfTheValidatorProveNothing(t *testing.T) {
	a := schematest.MustCompile(t, `{"enum":["`+strings.Repeat("a", 100)+`"]}`)
	b := schematest.MustCompile(t, `{"not":{"anyOf":[{"minLength":1},{"maxLength":3}]}}`).WithLimits(schema.Limits{MaxSteps: 10})
	if got := contained(a, b); got.Answer != contain.Undecided || got.Reason != contain.ReasonWitness {
		t.Errorf("%+v", got)
	}
}

func TestUndecidedNamesThePlace(t *testing.T) {
	tests := []struct {
		a, b    string
		reason  contain.Reason
		side    contain.Side
		pointer string
	}{
		{`{"type":"object","required":["n"],"properties":{"n":{"type":"number","minimum":1e999999999999,"maximum":2e999999999999}}}`, `{"properties":{"n":{"type":"integer"}}}`, contain.ReasonNumber, contain.SideA, "/properties/n"},
		{`{"type":"array","items":{"type":"string","pattern":"^[ab]{30}$"},"minItems":1}`, `{"items":{"anyOf":[{"pattern":"^(a|b)*a(a|b){24}$"},{"pattern":"^(a|b)*b(a|b){24}$"}]}}`, contain.ReasonPattern, contain.SideB, "/items/anyOf/1"},
		{`{"type":"object","required":["x"],"properties":{"x":{"type":"array","minItems":1e9}}}`, `{"type":"string"}`, contain.ReasonWitness, contain.SideA, "/properties/x"},
	}
	for _, test := range tests {
		got := contained(schematest.MustCompile(t, test.a), schematest.MustCompile(t, test.b))
		if got.Answer != contain.Undecided || got.Reason != test.reason || got.Side != test.side || got.Pointer != test.pointer {
			t.Errorf("%s in %s: got %+v", test.a, test.b, got)
		}
	}
}

// TestBudgetTurnsNoAnswer gives ever more steps: an answer may come, and then
// stays.
func TestBudgetTurnsNoAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		pair := f.Need(t, schematest.DrawSchema(3).Draw(t, "a"), schematest.DrawSchema(3).Draw(t, "b"))
		full := contained(pair[0], pair[1])
		for steps := 1; steps < 10_000; steps *= 3 {
			few := contain.Budget{Steps: steps, Strings: rapid.IntRange(1, 5000).Draw(t, "strings")}
			got := contain.IsSubschemaWithin(context.Background(), pair[0], pair[1], few)
			if _, err := contain.SampleWithin(context.Background(), pair[0], few); errors.Is(err, contain.ErrUnsatisfiable) {
				if v, err := contain.Sample(pair[0]); err == nil {
					t.Fatalf("called unsatisfiable with %d steps, but accepts %s: %s", steps, v, pair[0].Source())
				}
			}
			if got.Answer != contain.Undecided && got.Answer != full.Answer {
				t.Fatalf("%s with %d steps, else %s:\na: %s\nb: %s", got.Answer, steps, full.Answer, pair[0].Source(), pair[1].Source())
			}
		}
	})
}
