package schema_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// costly are payloads whose judging takes far more than reading them, and would be
// valid, invalid or malformed if it were done.
func costly() []hostileCase {
	const slow = `"pattern":"^(?:[ab]{0,1000}a[ab]{0,1000})*$"`
	text := `"` + strings.Repeat("a", 20_000) + `"`
	branches := schematest.List(200, func(i int) string {
		return fmt.Sprintf(`{"items":{"type":"integer"},"maxItems":%d}`, 100_000+i)
	})
	numbers := schematest.List(5_000, func(i int) string { return fmt.Sprint(i) })
	return []hostileCase{
		{"a slow pattern", `{` + slow + `}`, []byte(text), schema.Valid, 0},
		{"a slow pattern that fails", `{` + slow + `}`, []byte(`"` + strings.Repeat("a", 20_000) + `!"`), schema.Invalid, 0},
		{"a slow pattern under not", `{"not":{` + slow + `}}`, []byte(text), schema.Invalid, 0},
		{"not of a slow pattern that fails", `{"not":{` + slow + `}}`, []byte(`"` + strings.Repeat("a", 20_000) + `!"`), schema.Valid, 0},
		{"a slow pattern in a branch", `{"anyOf":[{` + slow + `},{"type":"string"}]}`, []byte(text), schema.Valid, 0},
		{"branches that all read it", `{"allOf":` + branches + `}`, []byte(numbers), schema.Valid, 0},
		{"branches of which one may match", `{"oneOf":` + branches + `}`, []byte(numbers), schema.Invalid, 0},
		{"a slow pattern before a fault of syntax", `{"items":{` + slow + `}}`, []byte("[" + text + ",}"), schema.Malformed, 0},
	}
}

// TestStepsEndTheJudging gives payloads too few steps: the verdict is one of its own,
// whatever it would have been, and never valid.
func TestStepsEndTheJudging(t *testing.T) {
	for _, c := range costly() {
		t.Run(c.name, func(t *testing.T) {
			s := schematest.MustCompile(t, c.schema)
			if got := s.Check(c.payload); got.Verdict != c.want {
				t.Fatalf("with all steps: %v, want %v", got.Verdict, c.want)
			}
			few := s.WithLimits(schema.Limits{MaxSteps: 3 * len(c.payload)})
			got := few.Check(c.payload)
			if few.Valid(c.payload) {
				t.Error("valid without enough steps")
			}
			if c.want == schema.Malformed {
				if got.Verdict != schema.Malformed {
					t.Errorf("%v, although it is no JSON", got.Verdict)
				}
				return
			}
			if got.Verdict != schema.Exceeded || got.Exceeded == nil || got.Violations != nil || !strings.Contains(got.Exceeded.Error(), fmt.Sprint(3*len(c.payload))) {
				t.Errorf("%v: %+v", got.Verdict, got)
			}
			if listed := few.Validate(c.payload); len(listed) != 1 || listed[0].Keyword != schema.KeywordLimit {
				t.Errorf("listed as %v", listed)
			}
			// The pass that ran out of steps leaves nothing behind for the next payload.
			if want := s.Valid([]byte(`"a"`)); few.Valid([]byte(`"a"`)) != want {
				t.Errorf("the next payload is judged otherwise than %v", want)
			}
		})
	}
}

// TestFewStepsTurnNoVerdict judges one payload after another in scratch space that some
// of them leave when their steps are used up: each gets its verdict, or none.
func TestFewStepsTurnNoVerdict(t *testing.T) {
	exceeded, judged := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		s := f.Need(t, schematest.Either(schematest.DrawSchema(3).Draw(t, "a"), schematest.All(schematest.DrawSchema(3).Draw(t, "b"),
			schematest.Map{"additionalProperties": schematest.Map{"$ref": "#"}, "items": schematest.Map{"$ref": "#"}, "uniqueItems": true})))[0]
		few := s.WithLimits(schema.Limits{MaxSteps: rapid.IntRange(10, 200).Draw(t, "steps")})
		for range 8 {
			doc := []byte(schematest.DrawValue(3).Draw(t, "payload"))
			want, got := s.Check(doc).Verdict, few.Check(doc).Verdict
			if got != want && got != schema.Exceeded || few.Valid(doc) && want != schema.Valid {
				t.Fatalf("%s: %v, with few steps %v: %s", doc, want, got, s.Source())
			}
			if got == schema.Exceeded {
				exceeded++
			} else {
				judged++
			}
		}
	})
	if exceeded == 0 || judged == 0 {
		t.Errorf("%d payloads exceeded the steps, %d did not", exceeded, judged)
	}
}

// TestContextEndsTheJudging ends the context. What takes no time is judged even so.
func TestContextEndsTheJudging(t *testing.T) {
	s := schematest.MustCompile(t, `{"items":{"anyOf":[{"minimum":1},{"type":"string"}]}}`)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.CheckWithin(ended, []byte(`[1,2]`)); got.Verdict != schema.Valid {
		t.Errorf("a short payload: %+v", got)
	}
	long := strings.Repeat("1,", 1_000_000)
	for _, payload := range []string{`[` + long + `2]`, `[` + long + `0]`} {
		got := s.CheckWithin(ended, []byte(payload))
		if got.Verdict != schema.Exceeded || !errors.Is(got.Exceeded, context.Canceled) {
			t.Errorf("%.9s…%s: %v", payload, payload[len(payload)-2:], got.Verdict)
		}
	}
	if got := s.CheckWithin(ended, []byte(`[`)); got.Verdict != schema.Malformed {
		t.Errorf("text that is no JSON: %v", got.Verdict)
	}
	if got := s.CheckWithin(t.Context(), []byte(`[1,2]`)); got.Verdict != schema.Valid {
		t.Errorf("the next payload: %v", got.Verdict)
	}
}

// TestListingIsCutShort finds payloads invalid at once, and leaves too few steps to say
// why: the verdict stands, and the list says that it is not whole.
func TestListingIsCutShort(t *testing.T) {
	slow := `{"pattern":"^(?:[ab]{0,1000}a[ab]{0,1000})*$"}`
	s := schematest.MustCompile(t, `{"required":["x"],"properties":{"t":{"not":{"type":"boolean"},"anyOf":[{"type":"integer"},`+slow+`]}}}`)
	payload := []byte(`{"t":"` + strings.Repeat("a", 10_000) + `!"}`)
	whole := s.Check(payload)
	if whole.Verdict != schema.Invalid || len(whole.Violations) < 2 {
		t.Fatalf("with all steps: %+v", whole)
	}
	// Enough to find it invalid, which takes one match, and too few to explain.
	found := false
	for steps := len(payload); steps < 1<<26 && !found; steps += steps / 8 {
		got := s.WithLimits(schema.Limits{MaxSteps: steps}).Check(payload)
		if got.Verdict == schema.Invalid && got.Truncated {
			found = true
			if got.Omitted == 0 || len(got.Violations) == 0 {
				t.Errorf("%d steps: %+v", steps, got)
			}
			for _, v := range got.Violations {
				if v.Keyword != schema.KeywordLimit && v != whole.Violations[0] && v != whole.Violations[1] {
					t.Errorf("%d steps: %+v is not wrong", steps, v)
				}
			}
		}
	}
	if !found {
		t.Error("no number of steps cuts the list short")
	}
}

// TestManyReadersArePaidFor gives payloads to schemas of which hundreds of parts read the
// same bytes, and fewer steps than that takes. Steps are counted, so that it does not depend
// on the machine.
func TestManyReadersArePaidFor(t *testing.T) {
	many := func(format string) string {
		return schematest.Object(300, func(i int) string { return fmt.Sprintf(format, i, 100_000+i) })
	}
	names := schematest.Object(2000, func(i int) string { return fmt.Sprintf(`"n%d":%d`, i, i) })
	list := `{"a":` + schematest.List(5000, func(i int) string { return fmt.Sprint(i) }) + `}`
	for name, c := range map[string]struct{ schema, payload string }{
		"patterns of names":             {`{"patternProperties":` + many(`"[xy]%d$":{"const":%d}`) + `}`, names},
		"patterns of names left over":   {`{"allOf":[{"patternProperties":` + many(`"[xy]%d$":{"const":%d}`) + `}],"unevaluatedProperties":true}`, names},
		"patterns that name one member": {`{"patternProperties":` + many(`"a?|%d":{"maxItems":%d}`) + `}`, list},
		"slow patterns of a long name": {`{"patternProperties":{"^(?:[ab]{0,1000}a[ab]{0,1000})*$":{}}}`,
			`{"` + strings.Repeat("a", 50_000) + `":1}`},
	} {
		s, err := schema.CompileWith([]byte(c.schema), schema.CompileOptions{Profile: schema.ProfileFull})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Check([]byte(c.payload)); got.Verdict != schema.Valid {
			t.Errorf("%s, with all steps: %+v", name, got)
		}
		few := s.WithLimits(schema.Limits{MaxSteps: 20 * len(c.payload)})
		if got := few.Check([]byte(c.payload)); got.Verdict != schema.Exceeded {
			t.Errorf("%s: %v", name, got.Verdict)
		}
	}
	branches := schematest.List(300, func(i int) string { return fmt.Sprintf(`{"properties":{"b%d":{"type":"string"}}}`, i) })
	s := schematest.MustCompile(t, `{"allOf":[{"required":["x"]},{"allOf":`+branches+`},{"required":["y"]}]}`)
	if whole := s.Check([]byte(names)); len(whole.Violations) != 2 || whole.Truncated {
		t.Errorf("with all steps: %+v", whole)
	}
	got := s.WithLimits(schema.Limits{MaxSteps: 20 * len(names)}).Check([]byte(names))
	if got.Verdict != schema.Invalid || len(got.Violations) != 1 || !got.Truncated {
		t.Errorf("branches that a report goes through: %+v", got)
	}
}
