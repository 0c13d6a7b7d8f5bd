package gojsonschema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	library "github.com/xeipuuv/gojsonschema"
	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

func compiled(t *testing.T, source string) (*schema.Schema, *Validator) {
	t.Helper()
	s, err := schema.Compile([]byte(source))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	v, err := Compile(s)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return s, v
}

// A number that float64 does not hold is only beyond the engine where the schema
// compares numbers by equality, anywhere in it.
func TestWhereInexactNumbersMatter(t *testing.T) {
	for source, exact := range map[string]bool{
		`{"type":"number"}`:                                          false,
		`{"minimum":1,"maximum":1e30}`:                               false,
		`{"enum":["a",true,null]}`:                                   false,
		`{"const":"a"}`:                                              false,
		`{"const":null}`:                                             false,
		`{"enum":["a",1]}`:                                           true,
		`{"const":1.5}`:                                              true,
		`{"const":[]}`:                                               true, // it could hold numbers
		`{"enum":[{}]}`:                                              true,
		`{"uniqueItems":true}`:                                       true,
		`{"items":{"uniqueItems":true}}`:                             true,
		`{"properties":{"a":{"const":1}}}`:                           true,
		`{"additionalProperties":{"const":1}}`:                       true,
		`{"anyOf":[{"type":"string"},{"enum":[2]}]}`:                 true,
		`{"not":{"const":1}}`:                                        true,
		`{"properties":{"a":{"$ref":"#"}}}`:                          false, // and it ends
		`{"definitions":{"d":{"const":1}},"type":"number"}`:          false, // nothing refers to d
		`{"definitions":{"d":{"const":1}},"$ref":"#/definitions/d"}`: true,
	} {
		s, v := compiled(t, source)
		if got := comparesNumbers(s.Root(), map[schema.Node]bool{}); got != exact || v.exact != exact {
			t.Errorf("%s: compares numbers is %t, %t", source, got, v.exact)
		}
		r := v.Check([]byte(`9007199254740993`))
		if limit := len(r.Violations) == 1 && r.Violations[0].Keyword == schema.KeywordLimit; limit != exact {
			t.Errorf("%s: %+v", source, r)
		}
	}
}

// Counts are written down with their edges: no maximum is none, and 0 is one.
func TestCountsKeepTheirEdges(t *testing.T) {
	for _, tt := range []struct{ source, valid, invalid string }{
		{`{"minLength":0}`, `""`, ``},
		{`{"minLength":1}`, `"é"`, `""`},
		{`{"maxLength":0}`, `""`, `"a"`},
		{`{"maxLength":1}`, `"é"`, `"ab"`},
		{`{"minItems":0}`, `[]`, ``},
		{`{"minItems":1}`, `[1]`, `[]`},
		{`{"maxItems":0}`, `[]`, `[1]`},
		{`{"maxItems":1}`, `[1]`, `[1,2]`},
		{`{"minimum":0}`, `0`, `-1`},
		{`{"exclusiveMinimum":0}`, `1`, `0`},
		{`{"maximum":0}`, `0`, `1`},
		{`{"exclusiveMaximum":0}`, `-1`, `0`},
	} {
		s, v := compiled(t, tt.source)
		for payload, want := range map[string]schema.Verdict{tt.valid: schema.Valid, tt.invalid: schema.Invalid} {
			if payload == "" {
				continue
			}
			if got := v.Check([]byte(payload)).Verdict; got != want || s.Check([]byte(payload)).Verdict != want {
				t.Errorf("%s: %s is %s, want %s", tt.source, payload, got, want)
			}
		}
	}
}

// A panic of the library is contained, and says nothing about the payload.
func TestPanicsAreContained(t *testing.T) {
	s, _ := compiled(t, `{}`)
	broken := &Validator{native: s, schema: nil, runs: newRuns()}
	if _, err := broken.judge([]byte(`"secret"`)); !errors.Is(err, errPanic) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	r := broken.Check([]byte(`"secret"`))
	if r.Verdict != schema.Invalid || len(r.Violations) != 1 || r.Violations[0].Keyword != schema.KeywordLimit || strings.Contains(r.Violations[0].Message, "secret") {
		t.Errorf("got %+v", r)
	}
	if problems := (&Meta{}).Check([]byte(`{}`)); len(problems) != 1 || problems[0].Message != "the meta-schema could not be applied" {
		t.Errorf("got %+v", problems)
	}
	for _, bad := range []string{``, `{`, `{"type":"strng"}`} {
		if _, err := compile([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "gojsonschema: ") {
			t.Errorf("%q compiles: %v", bad, err)
		}
	}
}

// A report is sorted, has no doubles, and lists so many violations and no more.
func TestReportsAreBounded(t *testing.T) {
	_, v := compiled(t, `{"type":"array","items":{"type":"boolean"}}`)
	for n, want := range map[int]int{1: 1, schema.DefaultMaxViolations - 1: schema.DefaultMaxViolations - 1, schema.DefaultMaxViolations: schema.DefaultMaxViolations, schema.DefaultMaxViolations + 1: schema.DefaultMaxViolations} {
		r := v.Check([]byte("[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]"))
		if len(r.Violations) != want || r.Truncated != (n > want) || r.Omitted != n-want {
			t.Errorf("%d wrong items: %d violations, truncated %t", n, len(r.Violations), r.Truncated)
		}
		for i := 1; i < len(r.Violations); i++ {
			if r.Violations[i-1].Path >= r.Violations[i].Path {
				t.Errorf("%q stands before %q", r.Violations[i-1].Path, r.Violations[i].Path)
			}
		}
	}
	s, err := schema.Compile([]byte(`{"type":"array","items":{"type":"boolean"}}`))
	if err != nil {
		t.Fatal(err)
	}
	few, err := capability.Limited(Engine{}, schema.Limits{MaxViolations: 2}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	if r := few.CheckWithin(t.Context(), []byte(`[1,2,3,4,5]`)); len(r.Violations) != 2 || r.Omitted != 3 {
		t.Errorf("under another limit: %+v", r)
	}
	_, v = compiled(t, `{"additionalProperties":false}`)
	long := strings.Repeat("n", 3*maxPath)
	if r := v.Check([]byte(`{"` + long + `":1}`)); len(r.Violations) != 1 || len(r.Violations[0].Path) > maxPath+4 || len(r.Violations[0].Message) > maxMessage+4 {
		t.Errorf("a long name: %d violations", len(r.Violations))
	}
	_, v = compiled(t, `{"allOf":[{"type":"string"},{"type":"string"}]}`)
	if r := v.Check([]byte(`1`)); len(r.Violations) != 1 {
		t.Errorf("the same violation twice: %+v", r.Violations)
	}
}

// An error of a later version of the library still makes a violation.
func TestUnknownErrors(t *testing.T) {
	if keyword, message := plainViolation("number_of_moons", nil); keyword != schema.KeywordNone || message != "the value fails number_of_moons" {
		t.Errorf("got %v, %s", keyword, message)
	}
	for v, want := range map[any]string{big.NewFloat(1.5): "1.5", 7: "7", "x": "x"} {
		if got := bound(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if typeText("[string,null]") != "string|null" || typeText(nil) != "" || given("integer") != "number" || given("array") != "array" || given(nil) != "" {
		t.Error("types are worded otherwise than package schema does")
	}
}

// Pointers escape the names that RFC 6901 reserves, whatever the name is.
func TestPointers(t *testing.T) {
	_, v := compiled(t, `{"additionalProperties":{"items":{"type":"null"}}}`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z~/.$# \x{e9}"\\]{0,6}`).Draw(t, "name")
		at := rapid.IntRange(0, 3).Draw(t, "at")
		items := []any{nil, nil, nil, nil}
		items[at] = 1
		payload, err := json.Marshal(map[string]any{name: items})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("/%s/%d", strings.NewReplacer("~", "~0", "/", "~1").Replace(name), at)
		if r := v.Check(payload); len(r.Violations) != 1 || r.Violations[0].Path != want {
			t.Fatalf("%s: got %+v, want %s", payload, r.Violations, want)
		}
	})
}

// fixed is a validator that has made up its mind.
type fixed schema.Report

func (f fixed) CheckWithin(context.Context, []byte) schema.Report { return schema.Report(f) }

// A value on which the two engines disagree is a fault of its own, unless the
// library had to pass; a value that both refuse is the schema's.
func TestDisagreement(t *testing.T) {
	valid := fixed{Verdict: schema.Valid}
	invalid := fixed{Verdict: schema.Invalid, Violations: []schema.Violation{{Path: "/a", Message: "wrong", Keyword: schema.KeywordType}}}
	atRoot := fixed{Verdict: schema.Invalid, Violations: []schema.Violation{{Message: "wrong"}}}
	beyond := fixed(limit("too big"))
	both := fixed{Verdict: schema.Invalid, Violations: append(beyond.Violations, invalid.Violations...)}
	for _, tt := range []struct {
		name     string
		c        validators
		message  string
		disagree bool
	}{
		{"both take it", validators{valid, valid}, "", false},
		{"no library", validators{valid, nil}, "", false},
		{"the library passes", validators{valid, beyond}, "", false},
		{"native alone refuses", validators{invalid, nil}, "the default does not pass its own schema: /a: wrong", false},
		{"both refuse", validators{invalid, invalid}, "the default does not pass its own schema: /a: wrong", false},
		{"refused, and the library passes", validators{atRoot, beyond}, "the default does not pass its own schema: wrong", false},
		{"no JSON", validators{fixed{Verdict: schema.Malformed}, nil}, "the default does not pass its own schema: it is not valid JSON", false},
		{"native alone takes it", validators{valid, invalid}, "the default is valid to the native validator but invalid to gojsonschema", true},
		{"the library alone takes it", validators{invalid, valid}, "the default is invalid to the native validator but valid to gojsonschema", true},
		{"a limit among others", validators{valid, both}, "the default is valid to the native validator but invalid to gojsonschema", true},
	} {
		var r review
		r.value(tt.c, "/default", "default", nil)
		switch {
		case tt.message == "" && len(r.faults) == 0:
		case len(r.faults) != 1 || r.faults[0].Message != tt.message || r.faults[0].Pointer != "/default" || strings.Contains(r.faults[0].Hint, "fault of a validator") != tt.disagree:
			t.Errorf("%s: %+v", tt.name, r.faults)
		}
	}
}

// The library is asked for draft-07 whatever else it knows.
func TestDraft(t *testing.T) {
	s, err := schema.Compile([]byte(`{"exclusiveMinimum":1}`)) // a boolean in draft-04
	if err != nil {
		t.Fatal(err)
	}
	v, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	if v.Check([]byte(`1`)).Verdict != schema.Invalid || v.Check([]byte(`2`)).Verdict != schema.Valid {
		t.Error("exclusiveMinimum is not that of draft-07")
	}
	if library.FormatCheckers.Has("agentd-email") && !library.FormatCheckers.IsFormat("agentd-email", 5) {
		t.Error("a format judges what is no string")
	}
}
