package contain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestSampleExhausts draws samples and excludes each from then on, until none is
// left: a schema with n values has n samples, all valid and all different, and
// is then unsatisfiable.
func TestSampleExhausts(t *testing.T) {
	for _, c := range []struct {
		schema string
		count  int
	}{
		{`{"type":"null"}`, 1},
		{`{"type":"boolean"}`, 2},
		{`{"type":["null","boolean"]}`, 3},
		{`{"const":{"a":[1]}}`, 1},
		{`{"enum":[1,"a",null,[1],{}]}`, 5},
		{`{"enum":[1,"a",null],"type":["integer","null"]}`, 2},
		{`{"enum":[1,2,3,4],"not":{"minimum":3}}`, 2},
		{`{"type":"integer","minimum":-2,"maximum":2}`, 5},
		{`{"type":"integer","exclusiveMinimum":-2,"exclusiveMaximum":2}`, 3},
		{`{"type":"integer","minimum":0.5,"maximum":3.5}`, 3},
		{`{"type":"integer","minimum":9007199254740992,"maximum":9007199254740994}`, 3},
		{`{"type":"integer","minimum":1e30,"exclusiveMaximum":1000000000000000000000000000003}`, 3},
		{`{"type":"number","minimum":1.5,"maximum":1.5}`, 1},
		{`{"type":"string","maxLength":0}`, 1},
		{`{"type":"string","pattern":"^[ab]{1,2}$"}`, 6},
		{`{"type":"string","pattern":"^(true|false)?$"}`, 3},
		{`{"type":"string","pattern":"^[a-c]+$","maxLength":2,"not":{"pattern":"c"}}`, 6},
		{`{"type":"string","pattern":"^\\u{1F600}|\\u{1F601}$","maxLength":1}`, 2},
		{`{"type":"array","maxItems":0}`, 1},
		{`{"type":"array","items":{"type":"null"},"maxItems":3}`, 4},
		{`{"type":"array","items":{"type":"boolean"},"maxItems":2}`, 7},
		{`{"type":"array","items":{"type":"boolean"},"uniqueItems":true}`, 5},
		{`{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"minItems":2,"maxItems":2}`, 6},
		{`{"type":"array","items":{"type":"array","items":{"type":"null"},"maxItems":1},"maxItems":1}`, 3},
		{`{"type":"object","additionalProperties":false}`, 1},
		{`{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}`, 3},
		{`{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`, 2},
		{`{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"null"}},"additionalProperties":false}`, 6},
		{`{"type":"object","properties":{"a/b":{"const":1},"":{"const":2}},"additionalProperties":false}`, 4},
		{`{"oneOf":[{"enum":[1,2]},{"enum":[2,3]}]}`, 2},
		{`{"anyOf":[{"enum":[1,2]},{"enum":[2,3]}]}`, 3},
		{`{"allOf":[{"enum":[1,2]},{"enum":[2,3]}]}`, 1},
		{`{"type":"boolean","not":{"const":true}}`, 1},
		{`{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/definitions/l"},"minItems":1,"maxItems":1}],"definitions":{"l":{"type":"null"}}}`, 2},
	} {
		schematest.MustCompile(t, c.schema)
		var found []string
		for len(found) <= c.count {
			but := `{"allOf":[` + c.schema + `]}`
			if strings.Contains(c.schema, `"#`) { // references need the definitions at the root
				but = c.schema
			}
			if len(found) > 0 {
				but = strings.TrimSuffix(but, "}") + `,"not":{"enum":[` + strings.Join(found, ",") + `]}}`
			}
			s := schematest.MustCompile(t, but)
			v, err := contain.SampleWithin(t.Context(), s, contain.Budget{})
			if errors.Is(err, contain.ErrUnsatisfiable) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", but, err)
				break
			}
			if !s.Valid(v) {
				t.Errorf("%s: %s is not valid", but, v)
				break
			}
			found = append(found, string(v))
		}
		if len(found) != c.count {
			t.Errorf("%s: %d values %s, want %d", c.schema, len(found), found, c.count)
		}
	}
}

// TestSampleOfRecursion samples schemas that contain themselves, in which the
// search must find where to stop.
func TestSampleOfRecursion(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"an optional member", `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{}`},
		{"a list that may be empty", `{"type":"array","items":{"$ref":"#"}}`, `[]`},
		{"a list that must not end at once", `{"type":"array","minItems":1,"items":{"$ref":"#/definitions/a"},"definitions":{"a":{"type":"array","items":{"$ref":"#"}}}}`, `[[]]`},
		{"a leaf behind a union", `{"$ref":"#/definitions/t","definitions":{"t":{"anyOf":[{"type":"array","items":{"$ref":"#/definitions/t"},"minItems":2},{"const":7}]}}}`, `7`},
		{"a tree without the bare leaf", `{"type":"array","minItems":2,"maxItems":2,"items":{"anyOf":[{"$ref":"#"},{"const":7}]}}`, `[7,7]`},
		{"two definitions in turn", `{"$ref":"#/definitions/a","definitions":{"a":{"type":"object","properties":{"b":{"$ref":"#/definitions/b"}},"required":["b"],"additionalProperties":false},
			"b":{"anyOf":[{"type":"null"},{"$ref":"#/definitions/a"}]}}}`, `{"b":null}`},
		{"three levels asked for", `{"type":"object","required":["n"],"properties":{"n":{"allOf":[{"$ref":"#/definitions/d"},{"required":["n"]}]}},"additionalProperties":false,
			"definitions":{"d":{"type":"object","properties":{"n":{"$ref":"#/definitions/d"}},"additionalProperties":false}}}`, `{"n":{"n":{}}}`},
	} {
		s := schematest.MustCompile(t, c.schema)
		got, err := contain.SampleWithin(t.Context(), s, contain.Budget{})
		if err != nil || string(got) != c.want || !s.Valid(got) {
			t.Errorf("%s: got %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// TestSampleGivesUp says how a search ends that finds no value in its bounds.
func TestSampleGivesUp(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	hard := `{"type":"string","allOf":[{"pattern":"^[ab]*a[ab]{18}$"},{"not":{"pattern":"^[ab]*a[ab]{18}$"}}]}`
	for _, c := range []struct {
		name, schema string
		ctx          context.Context
		budget       contain.Budget
		want         string
	}{
		{"the context is over", hard, over, contain.Budget{}, "schema: undecided whether a value passes (time)"},
		{"few steps", `{"type":"array","minItems":3,"items":{"type":"object","required":["a","b"]}}`, t.Context(), contain.Budget{Steps: 1, Time: time.Minute}, "schema: undecided whether a value passes (steps)"},
		{"a short witness", `{"type":"string","minLength":100}`, t.Context(), contain.Budget{Witness: 50, Time: time.Minute}, "schema: undecided whether a value passes (witness)"},
		{"no value at all", `{"type":"string","minLength":3,"maxLength":2}`, t.Context(), contain.Budget{}, "schema: no value passes the schema"},
	} {
		s := schematest.MustCompile(t, c.schema)
		got, err := contain.SampleWithin(c.ctx, s, c.budget)
		// The place of the search may follow the reason.
		if err == nil || !strings.HasPrefix(err.Error(), strings.TrimSuffix(c.want, ")")) {
			t.Errorf("%s: got %.60s, %v, want %s", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		err  contain.UndecidedError
		want string
	}{
		{contain.UndecidedError{Reason: contain.ReasonTime}, "schema: undecided whether a value passes (time)"},
		{contain.UndecidedError{Reason: contain.ReasonArray, Pointer: "/items"}, "schema: undecided whether a value passes (array, at /items)"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestSampleAgreesWithContainment asks one question in two ways: a is contained
// in b exactly if no value passes a and fails b.
func TestSampleAgreesWithContainment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		a, b := schematest.DrawSchema(2).Draw(t, "a"), schematest.DrawSchema(2).Draw(t, "b")
		s := f.Need(t, a, b, schematest.Map{"allOf": []any{a, schematest.Map{"not": b}}})
		got := contained(s[0], s[1])
		v, err := contain.SampleWithin(context.Background(), s[2], contain.Budget{})
		switch {
		case err == nil && (got.Answer == contain.Proven || !s[0].Valid(v) || s[1].Valid(v)):
			t.Fatalf("%s, but %s shows otherwise:\na: %s\nb: %s", got.Answer, v, s[0].Source(), s[1].Source())
		case errors.Is(err, contain.ErrUnsatisfiable) && got.Answer == contain.Refuted:
			t.Fatalf("refuted by %s, but no value is left:\na: %s\nb: %s", got.Witness, s[0].Source(), s[1].Source())
		}
		if again, errAgain := contain.SampleWithin(context.Background(), s[2], contain.Budget{}); string(again) != string(v) || fmt.Sprint(errAgain) != fmt.Sprint(err) {
			t.Fatalf("%s, %v and then %s, %v", v, err, again, errAgain)
		}
	})
}

// TestWitnessesHaveABound asks for values that fit the bound and for those that
// are one byte longer.
func TestWitnessesHaveABound(t *testing.T) {
	for src, size := range map[string]int{
		`{"type":"string","minLength":10}`:                                                              10, // of characters
		`{"type":"string","minLength":200}`:                                                             200,
		`{"type":"string","pattern":"^x{40}$"}`:                                                         40,
		`{"type":"array","minItems":30,"items":{"const":7}}`:                                            62,
		`{"type":"object","required":["a"],"properties":{"a":{"const":"0123456789"}}}`:                  12, // of values
		`{"type":"object","required":["a","b"],"properties":{"a":{"const":1234567},"b":{"const":123}}}`: 10,
	} {
		s := schematest.MustCompile(t, src)
		for bound, fits := range map[int]bool{size + 1: true, size - 1: false} {
			got, err := contain.SampleWithin(t.Context(), s, contain.Budget{Witness: bound, Time: time.Minute})
			var doubt *contain.UndecidedError
			if fits != (err == nil) || !fits && (!errors.As(err, &doubt) || doubt.Reason != contain.ReasonWitness) {
				t.Errorf("%s within %d: %s, %v", src, bound, got, err)
			}
			answer := contain.IsSubschemaWithin(t.Context(), s, schematest.MustCompile(t, `{"not":{}}`), contain.Budget{Witness: bound, Time: time.Minute})
			if fits != (answer.Answer == contain.Refuted) || !fits && answer.Reason != contain.ReasonWitness {
				t.Errorf("%s within %d: %+v", src, bound, answer)
			}
		}
	}
}

// TestValuesThatNestDeep has a chain of definitions as long as a value that the
// prover will build, and one that is longer.
func TestValuesThatNestDeep(t *testing.T) {
	chain := func(n int) *schema.Schema {
		links := schematest.Object(n, func(i int) string {
			return fmt.Sprintf(`"d%d":{"type":"array","minItems":1,"items":{"$ref":"#/definitions/d%d"}}`, i, i+1)
		})
		return schematest.MustCompile(t, `{"$ref":"#/definitions/d0","definitions":`+links[:len(links)-1]+fmt.Sprintf(`,"d%d":{"const":1}}}`, n))
	}
	for n, reason := range map[int]contain.Reason{100: "", 2000: contain.ReasonDepth} {
		got, err := contain.SampleWithin(t.Context(), chain(n), contain.Budget{})
		var doubt *contain.UndecidedError
		switch {
		case reason == "" && string(got) != strings.Repeat("[", n)+"1"+strings.Repeat("]", n):
			t.Errorf("%d levels: %s, %v", n, got, err)
		case reason != "" && (!errors.As(err, &doubt) || doubt.Reason != reason):
			t.Errorf("%d levels: %.60s, %v", n, got, err)
		}
	}
}
