package gojsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	library "github.com/xeipuuv/gojsonschema"
	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/schema"
)

func compile(t testing.TB, source string) (*schema.Schema, *gojsonschema.Validator) {
	t.Helper()
	s, err := schema.Compile([]byte(source))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	v, err := gojsonschema.Compile(s)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return s, v
}

// suitePath holds the groups of the official JSON Schema Test Suite that use
// only the keywords of the subset.
const suitePath = "../../testdata/conformance/json-schema-draft7-subset.json"

func TestConformance(t *testing.T) {
	src, err := os.ReadFile(suitePath)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		File, Description string
		Schema            json.RawMessage
		Tests             []struct {
			Description string
			Data        json.RawMessage
			Valid       bool
		}
	}
	if err := json.Unmarshal(src, &groups); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, g := range groups {
		s, err := schema.Compile(g.Schema)
		if err != nil {
			continue
		}
		name := g.File + ": " + g.Description
		v, err := gojsonschema.Compile(s)
		if err != nil {
			t.Errorf("%s: refused: %v", name, err)
			continue
		}
		for _, c := range g.Tests {
			ran++
			r := v.Check(c.Data)
			if (r.Verdict == schema.Valid) != c.Valid {
				t.Errorf("%s: %s: %s gives %+v, want valid=%v", name, c.Description, c.Data, r, c.Valid)
			}
		}
	}
	if ran < 300 {
		t.Errorf("only %d cases ran", ran)
	}
}

func TestViolationsAreWordedAsThoseOfPackageSchema(t *testing.T) {
	for _, c := range []struct{ schema, payload, want string }{
		{`{"type":["string","null"]}`, `1`, `: expected type string|null but got number [type]`},
		{`{"type":"object","required":["a/b","c"],"properties":{"c":{"type":"string"}},"additionalProperties":false}`, `{"x~y":1,"c":[]}`,
			`/a~1b: missing required property "a/b" [required]; /c: expected type string but got array [type]; /x~0y: additional property "x~y" is not allowed [additionalProperties]`},
		{`{"const":5}`, `6`, `: value differs from const [const]`},
		{`{"enum":["a","b"]}`, `"secret"`, `: value not in enum [enum]`},
		{`{"items":{"minLength":2,"maxLength":3,"pattern":"^x"}}`, `["a","abcd","xy"]`,
			`/0: string length < minLength 2 [minLength]; /0: string does not match pattern [pattern]; /1: string length > maxLength 3 [maxLength]; /1: string does not match pattern [pattern]`},
		{`{"format":"uuid"}`, `"x"`, `: format uuid: not of that format [format]`},
		{`{"items":{"minimum":2,"maximum":3}}`, `[1,4,2]`, `/0: number < minimum 2 [minimum]; /1: number > maximum 3 [maximum]`},
		{`{"items":{"exclusiveMinimum":2,"exclusiveMaximum":3.5}}`, `[2,3.5]`, `/0: number <= exclusiveMinimum 2 [exclusiveMinimum]; /1: number >= exclusiveMaximum 3.5 [exclusiveMaximum]`},
		{`{"minItems":2,"uniqueItems":true}`, `[1]`, `: array length < minItems 2 [minItems]`},
		{`{"maxItems":1,"uniqueItems":true}`, `[1,1.0]`, `: array length > maxItems 1 [maxItems]; : duplicate item [uniqueItems]`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `: expected type string but got number [type]; : anyOf matched zero schemas [anyOf]`},
		{`{"oneOf":[{"minimum":1},{"maximum":5}]}`, `3`, `: oneOf did not match exactly 1 schema [oneOf]`},
		{`{"allOf":[{"minimum":5}]}`, `3`, `: number < minimum 5 [minimum]`},
		{`{"not":{"type":"number"}}`, `3`, `: not-schema matched [not]`},
		{`{"properties":{"a":false}}`, `{"a":1}`, "/a: schema `false` rejects all values [false]"},
		{`{"type":"array","items":{"type":"boolean"}}`, `[` + strings.Repeat("1,", 150) + `1]`, "100 and more"},
	} {
		_, v := compile(t, c.schema)
		r := v.Check([]byte(c.payload))
		var parts []string
		for _, x := range r.Violations {
			parts = append(parts, fmt.Sprintf("%s: %s [%s]", x.Path, x.Message, x.Keyword))
		}
		got := strings.Join(parts, "; ")
		if r.Truncated {
			got = fmt.Sprintf("%d and more", len(parts))
		}
		if got != c.want || r.Verdict != schema.Invalid {
			t.Errorf("%s\ngot  %s\nwant %s", c.schema, got, c.want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("a message repeats the payload: %s", got)
		}
	}
}

func TestHostilePayloads(t *testing.T) {
	recursive := `{"definitions":{"n":{"type":"object","properties":{"next":{"$ref":"#/definitions/n"}},"additionalProperties":false}},"$ref":"#/definitions/n"}`
	deep := strings.Repeat(`{"next":`, 400) + "{}" + strings.Repeat("}", 400)
	for _, c := range []struct {
		name, schema, payload string
		verdict               schema.Verdict
		keyword               schema.Keyword
	}{
		{"huge number against an enum", `{"enum":[1]}`, `1e400`, schema.Invalid, schema.KeywordLimit},
		{"huge exponent against a bound", `{"minimum":0}`, `-1e999999999`, schema.Invalid, schema.KeywordLimit},
		{"tiny", `{"minimum":0}`, `1e-999999999`, schema.Invalid, schema.KeywordLimit},
		{"many huge ones", `{"items":{"type":"integer"}}`, `[` + strings.Repeat("1e1000000,", 100) + `1]`, schema.Invalid, schema.KeywordLimit},
		{"400 KB of digits", `{"type":"number"}`, strings.Repeat("9", 400_000), schema.Invalid, schema.KeywordLimit},
		{"2^53+1 against 2^53", `{"const":9007199254740992}`, `9007199254740993`, schema.Invalid, schema.KeywordLimit},
		{"2^53+1 against a bound", `{"maximum":9007199254740992}`, `9007199254740993`, schema.Invalid, schema.KeywordMaximum},
		{"one as 1.0", `{"const":1}`, `1.0`, schema.Valid, 0},
		{"minus zero", `{"const":0}`, `-0.0`, schema.Valid, 0},
		{"a sum of JavaScript", `{"enum":[0.30000000000000004]}`, `0.30000000000000004`, schema.Valid, 0},
		{"duplicate keys", `{"type":"object"}`, `{"a":1,"a":2}`, schema.Malformed, 0},
		{"lone surrogate", `{"type":"string"}`, `"\ud800"`, schema.Malformed, 0},
		{"bad UTF-8", `{"type":"string"}`, "\"\xff\"", schema.Malformed, 0},
		{"trailing", `{}`, `{} {}`, schema.Malformed, 0},
		{"empty", `{}`, ``, schema.Malformed, 0},
		{"depth 1e6", `{}`, strings.Repeat("[", 1_000_000), schema.Malformed, 0},
		{"depth in bounds", recursive, deep, schema.Valid, 0},
		{"format on a number", `{"format":"email"}`, `5`, schema.Valid, 0},
		{"their email", `{"format":"email"}`, `"Bob <bob@example.com>"`, schema.Invalid, schema.KeywordFormat},
		{"their date-time", `{"format":"date-time"}`, `"2026-01-02"`, schema.Invalid, schema.KeywordFormat},
		{"leap second", `{"format":"date-time"}`, `"2016-12-31T23:59:60Z"`, schema.Valid, 0},
		{"ECMA digit class", `{"pattern":"^\\cJ\\u{1F600}?$"}`, `"\n"`, schema.Valid, 0},
		{"NUL in a name", `{"additionalProperties":{"type":"null"}}`, `{"a\u0000b":1}`, schema.Invalid, schema.KeywordType},
		{"unique, 3e4 items", `{"uniqueItems":true}`, "[" + numbers(30_000) + "]", schema.Valid, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, v := compile(t, c.schema)
			start := time.Now()
			r := v.Check([]byte(c.payload))
			if r.Verdict != c.verdict || c.verdict == schema.Malformed && r.Syntax == nil {
				t.Fatalf("got %+v, want %v", r, c.verdict)
			}
			if c.keyword != 0 && (len(r.Violations) == 0 || r.Violations[0].Keyword != c.keyword) {
				t.Errorf("got %+v, want keyword %v", r.Violations, c.keyword)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, i)
	}
	return b.String()
}

func TestRefusedSchemas(t *testing.T) {
	doubling := `{"definitions":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/definitions/a%d"},{"$ref":"#/definitions/a%d"}]},`, i, i+1, i+1)
	}
	doubling += `"a40":{"type":"string"}},"$ref":"#/definitions/a0"}`
	for name, c := range map[string]struct{ schema, want string }{
		"recursive oneOf":     {`{"definitions":{"e":{"oneOf":[{"type":"number"},{"type":"object","properties":{"l":{"$ref":"#/definitions/e"}}}]}},"$ref":"#/definitions/e"}`, "recursion through oneOf, anyOf, allOf or not at /definitions/e/oneOf/1"},
		"recursive anyOf":     {`{"anyOf":[{"type":"null"},{"items":{"$ref":"#"}}]}`, "recursion through oneOf, anyOf, allOf or not at /anyOf/1"},
		"recursive allOf":     {`{"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, "recursion through"},
		"recursive not":       {`{"properties":{"a":{"not":{"$ref":"#"}}}}`, "recursion through"},
		"doubling references": {doubling, "references that unfold to more than 50000 schemas"},
		"huge bound":          {`{"minimum":1e999999}`, "a number that the library does not hold exactly"},
		"inexact constant":    {`{"const":9007199254740993}`, "a number that the library does not hold exactly"},
	} {
		s, err := schema.Compile([]byte(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = gojsonschema.Compile(s)
		var refused *gojsonschema.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	others, err := schema.CompileWith([]byte(`{"multipleOf":2}`), schema.CompileOptions{Profile: schema.ProfileFull})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gojsonschema.Compile(others); err == nil || !strings.Contains(err.Error(), "the full profile") {
		t.Errorf("a keyword that the library would not see: %v", err)
	}
	// Recursion that costs nothing extra is taken.
	compile(t, `{"properties":{"a":{"$ref":"#"},"b":{"items":{"$ref":"#"}}},"additionalProperties":{"oneOf":[{"type":"null"},{"type":"string"}]}}`)
}

func TestTheLibrarysOwnFormatsAreUntouched(t *testing.T) {
	before := library.FormatCheckers.IsFormat("email", "Bob <bob@example.com>")
	compile(t, `{"format":"email"}`)
	if !before || !library.FormatCheckers.IsFormat("email", "Bob <bob@example.com>") {
		t.Error("another user of the library would see our email format")
	}
}

func TestMeta(t *testing.T) {
	m, err := gojsonschema.NewMeta()
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		`{"type":"object","properties":{"a":{"pattern":"\\u{1F600}","enum":[1,2]}},"required":["a"]}`: "",
		`{"properties":{"a":{"minLength":-1}}}`:                                                       "/properties/a/minLength",
		`{"type":"strng"}`:                                                                            "/type",
	} {
		problems := m.Check([]byte(source))
		if want == "" && len(problems) != 0 || want != "" && (len(problems) == 0 || problems[0].Pointer != want || !strings.HasPrefix(problems[0].Message, "not a draft-07 schema: ")) {
			t.Errorf("%s: got %v, want %q", source, problems, want)
		}
	}
}

// schemas that both engines take, which use every keyword.
func bothTake() []string {
	return []string{
		`{"type":["object","array","null"],"properties":{"a":{"type":"integer","minimum":-2,"exclusiveMaximum":3},"b":{"type":"string","minLength":1,"maxLength":2,"pattern":"^[ab\\d]"}},"required":["a"],"additionalProperties":{"type":"boolean"}}`,
		`{"items":{"oneOf":[{"type":"number","maximum":1},{"type":"integer"},{"enum":["a",null,[1],{"a":1.0}]}]},"minItems":1,"maxItems":3,"uniqueItems":true}`,
		`{"anyOf":[{"const":1},{"not":{"type":["string","number"]}},{"allOf":[{"minLength":2},{"type":"string"}]}]}`,
		`{"definitions":{"t":{"type":"object","properties":{"a":{"$ref":"#/definitions/t"},"b":true,"":false},"additionalProperties":{"$ref":"#/definitions/s~1s"}},"s/s":{"exclusiveMinimum":0,"maximum":2}},"items":{"$ref":"#/definitions/t"},"properties":{"a":{"$ref":"#/definitions/t"}}}`,
	}
}

// value draws small JSON values that hit the schemas of [bothTake] often.
func value() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](false),
		rapid.SampledFrom([]any{json.Number("0"), json.Number("-0"), json.Number("1"), json.Number("1.0"), json.Number("10e-1"), json.Number("2.5"), json.Number("-3")}),
		rapid.SampledFrom([]any{"", "a", "b", "ab", "é", "1", "abc"}),
	)
	return rapid.Custom(func(t *rapid.T) any { return draw(t, leaf, 3) })
}

func draw(t *rapid.T, leaf *rapid.Generator[any], depth int) any {
	kind := rapid.IntRange(0, 3).Draw(t, "kind")
	if depth == 0 || kind < 2 {
		return leaf.Draw(t, "leaf")
	}
	n := rapid.IntRange(0, 3).Draw(t, "n")
	if kind == 2 {
		list := make([]any, n)
		for i := range list {
			list[i] = draw(t, leaf, depth-1)
		}
		return list
	}
	members := map[string]any{}
	for range n {
		members[rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "name")] = draw(t, leaf, depth-1)
	}
	return members
}

// TestBothEnginesAgree is the differential test on payloads of every shape.
func TestBothEnginesAgree(t *testing.T) {
	for _, source := range bothTake() {
		native, second := compile(t, source)
		rapid.Check(t, func(rt *rapid.T) {
			payload, err := json.Marshal(value().Draw(rt, "payload"))
			if err != nil {
				rt.Fatal(err)
			}
			a, b := native.Check(payload), second.Check(payload)
			if a.Verdict != b.Verdict {
				rt.Fatalf("%s\npayload %s\nnative  %+v\nlibrary %+v", source, payload, a, b)
			}
		})
	}
}

// FuzzAgree looks for payloads on which the engines differ.
func FuzzAgree(f *testing.F) {
	type pair struct {
		native *schema.Schema
		second *gojsonschema.Validator
	}
	var pairs []pair
	for i, source := range append(bothTake(), `{"format":"uri"}`, `{"format":"email"}`, `{"format":"date-time"}`, `{"pattern":"^(a|b\\.)*\\w+$"}`) {
		native, second := compile(f, source)
		pairs = append(pairs, pair{native, second})
		f.Add(uint8(i), `{"a":1,"b":"a"}`)
		f.Add(uint8(i), `[1,1.0,"x",{"a":[null]}]`)
		f.Add(uint8(i), `"2026-01-02T03:04:05Z"`)
		f.Add(uint8(i), `-1.5e300`)
	}
	f.Fuzz(func(t *testing.T, which uint8, payload string) {
		p := pairs[int(which)%len(pairs)]
		a, b := p.native.Check([]byte(payload)), p.second.Check([]byte(payload))
		if len(b.Violations) == 1 && b.Violations[0].Keyword == schema.KeywordLimit {
			return // beyond the library's safe domain
		}
		if a.Verdict != b.Verdict {
			t.Fatalf("payload %q\nnative  %+v\nlibrary %+v", payload, a, b)
		}
	})
}

func ExampleCompile() {
	s, err := schema.Compile([]byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := gojsonschema.Compile(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Check([]byte(`{"n":1}`)).Verdict, v.Check([]byte(`{}`)).Violations)
	// Output:
	// valid [{/n missing required property "n" required}]
}
