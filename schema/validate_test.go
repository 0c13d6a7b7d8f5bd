package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/internal/alloctest"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// render writes violations one on a line.
func render(violations []schema.Violation) string {
	var b strings.Builder
	for _, v := range violations {
		fmt.Fprintf(&b, "%s: %s [%v]\n", v.Path, v.Message, v.Keyword)
	}
	return strings.TrimSpace(b.String())
}

func TestViolations(t *testing.T) {
	const shapes = `{"oneOf":[
		{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number","minimum":0}},"required":["kind","r"]},
		{"type":"object","properties":{"kind":{"enum":["square","rect"]},"w":{"type":"number"}},"required":["kind","w"],"additionalProperties":false}]}`
	for _, c := range []struct{ name, schema, doc, want string }{
		{"type", `{"type":"string"}`, `1`, `: expected type string but got number [type]`},
		{"type list", `{"type":["string","null"]}`, `[]`, `: expected type string|null but got array [type]`},
		{"type integer", `{"type":"integer"}`, `1.5`, `: expected type integer but got number [type]`},
		{"type stops the node", `{"type":"string","enum":["a"]}`, `1`, `: expected type string but got number [type]`},
		{"const", `{"const":{"a": [1, "x"]}}`, `"secret"`, `: expected const {"a":[1,"x"]} [const]`},
		{"enum", `{"properties":{"severity":{"enum":["low","med","high"]}}}`, `{"severity":"secret"}`,
			`/severity: value not in enum ["low","med","high"] [enum]`},
		{"enum, too long to show", `{"enum":["` + strings.Repeat("a", 150) + `","` + strings.Repeat("b", 150) + `"]}`, `1`,
			`: value not in enum ["` + strings.Repeat("a", 150) + `",…] [enum]`},
		{"lengths", `{"items":{"minLength":2,"maxLength":3}}`, `["é","日本語x"]`,
			"/0: string length 1 < minLength 2 [minLength]\n/1: string length 4 > maxLength 3 [maxLength]"},
		{"pattern", `{"pattern":"^a+$"}`, `"secret"`, `: string does not match pattern /^a+$/ [pattern]`},
		{"formats", `{"properties":{"a":{"format":"uuid"},"b":{"format":"email"},"c":{"format":"uri"},"d":{"format":"uri-reference"},"e":{"format":"date-time"}}}`,
			`{"a":"","b":"","c":"","d":" ","e":""}`,
			"/a: format uuid: not a UUID [format]\n/b: format email: not an email [format]\n/c: format uri: not a URI [format]\n" +
				"/d: format uri-reference: not a URI reference [format]\n/e: format date-time: not an RFC-3339 date-time [format]"},
		{"bounds", `{"items":{"minimum":5,"maximum":1e1,"exclusiveMinimum":5.0,"exclusiveMaximum":10}}`, `[4,5,10,11]`,
			"/0: number < minimum 5 [minimum]\n/0: number <= exclusiveMinimum 5.0 [exclusiveMinimum]\n" +
				"/1: number <= exclusiveMinimum 5.0 [exclusiveMinimum]\n/2: number >= exclusiveMaximum 10 [exclusiveMaximum]\n" +
				"/3: number > maximum 1e1 [maximum]\n/3: number >= exclusiveMaximum 10 [exclusiveMaximum]"},
		{"required", `{"required":["a","b/c"],"properties":{"a":{}}}`, `{}`,
			"/a: missing required property \"a\" [required]\n/b~1c: missing required property \"b/c\" [required]"},
		{"required first, then members in order", `{"required":["z"],"properties":{"a":{"type":"null"},"b":{"type":"null"}}}`, `{"b":1,"a":1}`,
			"/z: missing required property \"z\" [required]\n/b: expected type null but got number [type]\n/a: expected type null but got number [type]"},
		{"additional property", `{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b~":1}`,
			`/b~0: additional property "b~" is not allowed [additionalProperties]`},
		{"additional property, required", `{"required":["b"],"additionalProperties":false}`, `{"b":1}`,
			`/b: additional property "b" is not allowed [additionalProperties]`},
		{"additional schema", `{"additionalProperties":{"type":"null"}}`, `{"x":{"y":1}}`, `/x: expected type null but got object [type]`},
		{"escaped names", `{"properties":{"a\u0062":{"type":"null"}}}`, `{"\u0061b":1}`, `/ab: expected type null but got number [type]`},
		{"items", `{"properties":{"findings":{"items":{"properties":{"severity":{"enum":["low"]}}}}}}`, `{"findings":[{"severity":1}]}`,
			`/findings/0/severity: value not in enum ["low"] [enum]`},
		{"array lengths", `{"items":{"minItems":1,"maxItems":2}}`, `[[],[1,2,3]]`,
			"/0: array length 0 < minItems 1 [minItems]\n/1: array length 3 > maxItems 2 [maxItems]"},
		{"unique", `{"uniqueItems":true}`, `[1,{"a":1,"b":2},1.0,{"b":2,"a":1}]`, `/2: duplicate item [uniqueItems]`},
		{"false", `{"properties":{"a":false}}`, `{"a":1}`, "/a: schema `false` rejects all values [false]"},
		{"empty name", `{"properties":{"":{"type":"null"}}}`, `{"":1}`, `/: expected type null but got number [type]`},
		{"allOf inline", `{"allOf":[{"type":"string"},{"minLength":3},{"maxLength":1}]}`, `"ab"`,
			": string length 2 < minLength 3 [minLength]\n: string length 2 > maxLength 1 [maxLength]"},
		{"not", `{"not":{"type":"string"}}`, `"x"`, `: not-schema matched [not]`},
		{"oneOf, two match", `{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`, `: oneOf matched 2 schemas (expected exactly 1) [oneOf]`},
		{"oneOf, the type decides", `{"oneOf":[{"type":"object","required":["a"]},{"type":"string","minLength":3}]}`, `"x"`,
			": oneOf matched 0 schemas (expected exactly 1) [oneOf]\n: string length 1 < minLength 3 [minLength]"},
		{"oneOf, a property decides", shapes, `{"w":1,"kind":"circle"}`,
			": oneOf matched 0 schemas (expected exactly 1) [oneOf]\n/r: missing required property \"r\" [required]"},
		{"oneOf, the property is unknown", shapes, `{"kind":"secret"}`,
			": oneOf matched 0 schemas (expected exactly 1) [oneOf]\n/kind: value not in enum [\"circle\",\"square\",\"rect\"] [enum]"},
		{"oneOf, the property is missing", shapes, `{"w":1}`,
			": oneOf matched 0 schemas (expected exactly 1) [oneOf]\n/kind: missing required property \"kind\" [required]\n" +
				"/r: missing required property \"r\" [required]"},
		{"anyOf, what got furthest", `{"anyOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"b":{"type":"null"}}}]}`, `{"a":1,"b":1}`,
			": anyOf matched zero schemas [anyOf]\n/b: expected type null but got number [type]"},
		{"same reference twice", `{"allOf":[{"$ref":"#/definitions/s"},{"$ref":"#/definitions/s"}],"definitions":{"s":{"type":"string"}}}`, `1`,
			`: expected type string but got number [type]`},
		{"order within a node", `{"const":1,"enum":[2],"maxLength":1,"pattern":"a","oneOf":[false],"anyOf":[false],"allOf":[false],"not":true}`, `"xx"`,
			": expected const 1 [const]\n: value not in enum [2] [enum]\n: string length 2 > maxLength 1 [maxLength]\n" +
				": oneOf matched 0 schemas (expected exactly 1) [oneOf]\n: schema `false` rejects all values [false]\n: anyOf matched zero schemas [anyOf]\n" +
				": schema `false` rejects all values [false]\n: schema `false` rejects all values [false]\n: not-schema matched [not]"},
		{"malformed", `{"type":"string"}`, `{"secret":1,"secret":2}`, `: invalid JSON at byte 12: duplicate key [syntax]`},
		{"malformed after a violation", `{"type":"string"}`, `[1,2`, `: invalid JSON at byte 4: unexpected end of input [syntax]`},
	} {
		s := schematest.MustCompile(t, c.schema)
		if got := render(s.Validate([]byte(c.doc))); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		if s.Valid([]byte(c.doc)) {
			t.Errorf("%s: Valid", c.name)
		}
	}
}

// TestMessagesCarryNoPayload validates a payload made of a marker against
// every assertion: the marker may show as a member name, and nowhere else.
func TestMessagesCarryNoPayload(t *testing.T) {
	const marker = "hunter2"
	for _, c := range []struct{ schema, doc string }{
		{`{"const":1}`, `"hunter2"`}, {`{"enum":["a"]}`, `"hunter2"`}, {`{"pattern":"^a$"}`, `"hunter2"`},
		{`{"maxLength":1}`, `"hunter2"`}, {`{"format":"uuid"}`, `"hunter2"`}, {`{"type":"null"}`, `"hunter2"`},
		{`{"maximum":1}`, `4242`}, {`{"uniqueItems":true}`, `["hunter2","hunter2"]`}, {`{"not":{}}`, `"hunter2"`},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":"b"}}}]}`, `{"k":"hunter2"}`},
		{`{"type":"null"}`, `{"a":"hunter2","a":"hunter2"}`}, {`{}`, `"hunter2`}, {`{}`, `hunter2`},
	} {
		for _, v := range schematest.MustCompile(t, c.schema).Validate([]byte(c.doc)) {
			if strings.Contains(v.Message+v.Path, marker) || strings.Contains(v.Message, "4242") {
				t.Errorf("%s on %s: %q carries the payload", c.schema, c.doc, v.Message)
			}
		}
	}
}

func TestViolationTextIsBounded(t *testing.T) {
	name := strings.Repeat("é", 5000)
	s := schematest.MustCompile(t, `{"definitions":{"d":{"additionalProperties":{"$ref":"#/definitions/d"},"type":"object"}},"$ref":"#/definitions/d"}`)
	doc := strings.Repeat(`{"`+name+`":`, 100) + "1" + strings.Repeat("}", 100)
	closed := schematest.MustCompile(t, `{"additionalProperties":false}`)
	for _, v := range append(s.Validate([]byte(doc)), closed.Validate([]byte(doc))...) {
		if len(v.Path) > 2100 || len(v.Message) > 300 {
			t.Errorf("a path of %d bytes, a message of %d", len(v.Path), len(v.Message))
		}
		if !json.Valid([]byte(fmt.Sprintf("%q", v.Path))) || strings.ContainsRune(v.Path+v.Message, '\ufffd') {
			t.Errorf("cut inside a character: %q", v.Path[len(v.Path)-10:])
		}
	}
}

func TestLimits(t *testing.T) {
	s := schematest.MustCompile(t, `{"items":{"type":"string"}}`)
	few := s.WithLimits(schema.Limits{MaxViolations: 3, MaxBytes: 20, MaxDepth: 2})
	for _, c := range []struct {
		doc       string
		want      schema.Verdict
		listed    int
		truncated bool
	}{
		{`["a"]`, schema.Valid, 0, false},
		{`[1,2]`, schema.Invalid, 2, false},
		{`[1,2,3]`, schema.Invalid, 3, false},
		{`[1,2,3,4]`, schema.Invalid, 3, true},
		{`[1,2,3,4,"a","a","a"]`, schema.Malformed, 0, false}, // 21 bytes
		{`[[[]]]`, schema.Malformed, 0, false},
	} {
		r := few.Check([]byte(c.doc))
		if r.Verdict != c.want || len(r.Violations) != c.listed || r.Truncated != c.truncated {
			t.Errorf("%s: %+v", c.doc, r)
		}
	}
	got := render(few.Validate([]byte(`[1,2,3,4]`)))
	if want := "/2: expected type string but got number [type]\n: more than 3 violations; the rest is not listed [limit]"; !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant it to end in\n%s", got, want)
	}
	if got := render(few.Validate([]byte(strings.Repeat(" ", 30)))); !strings.Contains(got, "longer than the limit of 20 bytes [syntax]") {
		t.Errorf("too long: %s", got)
	}
	if !s.Valid([]byte(`[` + strings.Repeat(`"a",`, 100) + `"a"]`)) {
		t.Error("the limits of the copy apply to the original")
	}
}

// TestCausesAreBounded checks that a failing branch with many faults does not
// crowd out what follows.
func TestCausesAreBounded(t *testing.T) {
	s := schematest.MustCompile(t, `{"properties":{"a":{"anyOf":[{"items":{"type":"string"}}]},"b":{"type":"null"}}}`)
	got := s.Validate([]byte(`{"a":[` + strings.Repeat("1,", 50) + `1],"b":1}`))
	if len(got) > 12 || got[len(got)-1].Path != "/b" {
		t.Errorf("%d violations, the last %+v", len(got), got[len(got)-1])
	}
}

func TestValidAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range []struct{ schema, doc string }{
		{`{"type":"object","properties":{"prUrl":{"type":"string","format":"uri","pattern":"^https?://"},"severity":{"enum":["low","med","high"]},
			"tags":{"type":"array","items":{"type":"string","minLength":1},"uniqueItems":true},"n":{"type":"number","maximum":1e3}},
			"required":["prUrl","severity"],"additionalProperties":{"type":"integer"}}`,
			`{"prUrl":"https:\/\/example.com","severity":"low","tags":["a","b","\u0063"],"n":12.75,"other":1,"more":2}`},
		{discriminated, string(lateTag(3, "num"))},
		{expression, string(schematest.Chain(5, "1"))},
		{`{"enum":[{"a":[1,2]},[1],"x"]}`, `{"a":[1.0,2]}`},
	} {
		s, doc := schematest.MustCompile(t, c.schema), []byte(c.doc)
		if !s.Valid(doc) {
			t.Fatalf("%s is not valid: %v", c.doc, s.Validate(doc))
		}
		if n := alloctest.Least(200, func() { s.Valid(doc) }); n >= 1 {
			t.Errorf("%s: %v allocations", c.doc, n)
		}
		if n := alloctest.Least(200, func() { s.Check(doc) }); n >= 1 {
			t.Errorf("%s: %v allocations in Check", c.doc, n)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := schematest.MustCompile(t, expression)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 30 {
				good, bad := schematest.Chain(n+1, "1"), schematest.Chain(n+1, "null")
				if !s.Valid(good) || s.Valid(bad) || len(s.Validate(bad)) == 0 {
					t.Errorf("worker %d: wrong verdict at depth %d", i, n)
				}
			}
		})
	}
	wg.Wait()
}

// TestRunForgetsFailures reuses scratch space after payloads that were left in
// the middle of objects with many members.
func TestRunForgetsFailures(t *testing.T) {
	wide := schematest.Object(130, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) })
	s := schematest.MustCompile(t, `{"properties":`+wide+`,"required":["p0","p64","p129"],"additionalProperties":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}`)
	good := schematest.Object(130, func(i int) string { return fmt.Sprintf(`"p%d":%d`, i, i) })
	for _, c := range []struct {
		doc  string
		want bool
	}{
		{good, true},
		{`{"p0":1,"x":{"p64":1,"p1":"no"},"x":1}`, false},
		{strings.Replace(good, `"p129"`, `"x":null,"y":`+good+`,"p129"`, 1), true},
		{strings.Replace(good, `"p129"`, `"p128"`, 1), false},
		{strings.Replace(good, `"p64"`, `"q"`, 1), false},
		{strings.Replace(good, `"p129"`, `"p100":1,"p129"`, 1), false},
		{good, true},
	} {
		if got := s.Valid([]byte(c.doc)); got != c.want {
			t.Errorf("%.80s: %v, want %v: %v", c.doc, got, c.want, s.Validate([]byte(c.doc)))
		}
	}
}

func TestKeywordText(t *testing.T) {
	seen := map[string]bool{}
	for k := schema.KeywordNone; k <= schema.KeywordUnevaluatedItems; k++ {
		text, err := k.MarshalText()
		if err != nil || seen[string(text)] || k.String() != string(text) {
			t.Errorf("%d: %q, %v", k, text, err)
		}
		seen[string(text)] = true
		var back schema.Keyword
		if err := back.UnmarshalText(text); err != nil || back != k {
			t.Errorf("%q came back as %v, %v", text, back, err)
		}
	}
	beyond := schema.KeywordUnevaluatedItems + 1
	if _, err := beyond.MarshalText(); err == nil {
		t.Error("a keyword beyond the list has a text")
	}
	if err := new(schema.Keyword).UnmarshalText([]byte("nonsense")); err == nil {
		t.Error("a text beyond the list is a keyword")
	}
}

func TestViolationJSON(t *testing.T) {
	got, err := json.Marshal(schema.Violation{Path: "/a", Message: "m", Keyword: schema.KeywordType})
	if want := `{"path":"/a","message":"m"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestSyntaxErrorIsTyped(t *testing.T) {
	report := schematest.MustCompile(t, `{}`).Check([]byte(`[1,]`))
	var err error = report.Syntax
	var syntax *schema.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset != 3 {
		t.Errorf("got %v", err)
	}
}

// TestReportsKeepToTheirBounds has values that a message just shows, and those that
// are one byte too long for it; and as many causes as are listed, and one more.
func TestReportsKeepToTheirBounds(t *testing.T) {
	message := func(src, doc string) string {
		t.Helper()
		got := schematest.MustCompile(t, src).Validate([]byte(doc))
		if len(got) == 0 {
			t.Fatalf("%.80s accepts %.80s", src, doc)
		}
		return got[0].Message
	}
	quoted := func(n int) string { return `"` + strings.Repeat("v", n-2) + `"` }
	for n, cut := range map[int]bool{199: false, 200: false, 201: true} {
		if got := message(`{"const":`+quoted(n)+`}`, `1`); strings.HasSuffix(got, quoted(n)) == cut {
			t.Errorf("const of %d bytes: %s", n, got)
		}
		if got := message(`{"type":"string","pattern":"`+strings.Repeat("x", n)+`"}`, `"y"`); strings.Contains(got, "…") != cut {
			t.Errorf("pattern of %d bytes: %s", n, got)
		}
		// The bracket counts, and so does the comma between two.
		if got := message(`{"enum":[`+quoted(n-1)+`]}`, `1`); strings.Contains(got, "…") != cut {
			t.Errorf("enum of %d bytes: %s", n, got)
		}
		if got := message(`{"enum":["a",`+quoted(n-5)+`]}`, `1`); strings.Contains(got, "…") != cut || !strings.Contains(got, `["a",`) {
			t.Errorf("enum of %d bytes in two values: %s", n, got)
		}
	}
	s := schematest.MustCompile(t, `{"properties":{"a":{"anyOf":[{"items":{"type":"string"}}]},"b":{"type":"null"}}}`)
	for wrong, want := range map[int]int{7: 9, 8: 10, 9: 10, 50: 10} { // with anyOf itself and /b
		if got := s.Validate([]byte(`{"a":[` + strings.Repeat("1,", wrong-1) + `1],"b":1}`)); len(got) != want || got[len(got)-1].Path != "/b" {
			t.Errorf("%d wrong elements: %d violations", wrong, len(got))
		}
	}
}

// TestObjectsOfManyProperties crosses the sizes at which the marks of properties
// take another word: each name is required, known, and refused twice.
func TestObjectsOfManyProperties(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 66, 127, 128, 129, 192, 193} {
		members := func(but int) string {
			var all []string
			for i := range n {
				if i != but {
					all = append(all, fmt.Sprintf(`"p%d":0`, i))
				}
			}
			return strings.Join(all, ",")
		}
		names := schematest.List(n, func(i int) string { return fmt.Sprintf(`"p%d"`, i) })
		s := schematest.MustCompile(t, `{"properties":`+schematest.Object(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) })+`,"required":`+names+`,"additionalProperties":false}`)
		if !s.Valid([]byte("{" + members(-1) + "}")) {
			t.Errorf("%d properties: refused", n)
		}
		for _, i := range []int{0, n / 2, n - 1} {
			if got := s.Validate([]byte("{" + members(i) + "}")); len(got) != 1 || got[0].Keyword != schema.KeywordRequired {
				t.Errorf("%d properties without p%d: %v", n, i, got)
			}
			twice := []byte(fmt.Sprintf(`{%s,"p%d":0}`, members(-1), i))
			if s.Valid(twice) || s.Check(twice).Verdict != schema.Malformed {
				t.Errorf("%d properties with p%d twice: %v", n, i, s.Check(twice).Verdict)
			}
			// An object inside has marks of its own.
			inner := schematest.MustCompile(t, `{"properties":{"x":{},"o":`+string(s.Source())+`},"additionalProperties":`+string(s.Source())+`}`)
			if !inner.Valid([]byte(`{"o":{`+members(-1)+`},"q":{`+members(-1)+`}}`)) || inner.Valid([]byte(`{"o":{`+members(-1)+`},"q":{`+members(i)+`}}`)) {
				t.Errorf("%d properties in objects: wrong", n)
			}
		}
	}
}
