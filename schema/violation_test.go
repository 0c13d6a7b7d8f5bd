package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// paths lists the pointers of the violations, one on a line.
func paths(violations []schema.Violation) string {
	var all []string
	for _, v := range violations {
		all = append(all, v.Path)
	}
	return strings.Join(all, "\n")
}

// TestPointers says where violations point: RFC 6901, with ~ and / escaped,
// names without their JSON escapes, and indexes in decimal.
func TestPointers(t *testing.T) {
	const (
		null   = `{"additionalProperties":{"type":"null"}}`
		closed = `{"additionalProperties":false}`
		deep   = `{"$ref":"#/definitions/d","definitions":{"d":{"type":["object","array"],"additionalProperties":{"$ref":"#/definitions/d"},"items":{"$ref":"#/definitions/d"}}}}`
	)
	for _, c := range []struct{ schema, doc, want string }{
		// names
		{null, `{"a":1}`, "/a"},
		{null, `{"":1}`, "/"},
		{null, `{" ":1}`, "/ "},
		{null, `{"a/b":1}`, "/a~1b"},
		{null, `{"/":1}`, "/~1"},
		{null, `{"//":1}`, "/~1~1"},
		{null, `{"m~n":1}`, "/m~0n"},
		{null, `{"~":1}`, "/~0"},
		{null, `{"~1":1}`, "/~01"},
		{null, `{"~0":1}`, "/~00"},
		{null, `{"~/":1}`, "/~0~1"},
		{null, `{"\/":1}`, "/~1"},
		{null, `{"\u002f\u007e":1}`, "/~1~0"},
		{null, `{"a\"b":1}`, `/a"b`},
		{null, `{"a\\b":1}`, `/a\b`},
		{null, `{"a\nb":1}`, "/a\nb"},
		{null, `{"\u0000":1}`, "/\x00"},
		{null, `{"%25":1}`, "/%25"},
		{null, `{"é":1}`, "/é"},
		{null, `{"\u00e9":1}`, "/é"},
		{null, `{"\ud83d\ude00":1}`, "/😀"},
		{null, `{"0":1}`, "/0"},
		{null, `{"-":1}`, "/-"},
		{null, `{"*":1}`, "/*"},
		{null, `{"a.b":1}`, "/a.b"},
		{null, `{"\u2028":1}`, "/\u2028"},
		// the same for surplus and for missing members
		{closed, `{"a/b":1,"m~n":2}`, "/a~1b\n/m~0n"},
		{closed, `{"\u002f":1}`, "/~1"},
		{`{"required":["a/b","m~n",""]}`, `{}`, "/a~1b\n/m~0n\n/"},
		{`{"required":["\u002f"]}`, `{}`, "/~1"},
		{`{"properties":{"x/y":{"required":["~"]}}}`, `{"x/y":{}}`, "/x~1y/~0"},
		// indexes
		{`{"items":{"type":"null"}}`, `[1]`, "/0"},
		{`{"items":{"type":"null"}}`, `[null,1]`, "/1"},
		{`{"items":{"type":"null"}}`, `[` + strings.Repeat("null,", 10) + `1]`, "/10"},
		{`{"items":{"type":"null"}}`, `[` + strings.Repeat("null,", 12345) + `1]`, "/12345"},
		{`{"uniqueItems":true}`, `[0,1,2,3,4,5,6,7,8,9,0]`, "/10"},
		{`{"items":{"uniqueItems":true}}`, `[[],[1,1],[1],[2,3,2]]`, "/1/1\n/3/2"},
		// the value at fault, not a part of it or what holds it
		{`{"items":{"minItems":1}}`, `[[]]`, "/0"},
		{`{"properties":{"a":{"not":{"required":["b"]}}}}`, `{"a":{"b":1}}`, "/a"},
		{`{"properties":{"a":{"enum":[1]}}}`, `{"a":{"b":1}}`, "/a"},
		// through references, combinators and levels
		{deep, `{"a":[{"b":[1]}]}`, "/a/0/b/0"},
		{deep, `[[[1]],{"":{"":1}}]`, "/0/0/0\n/1//"},
		{deep, `{"a~b":{"c/d":[[],1]}}`, "/a~0b/c~1d/1"},
		{`{"allOf":[{"properties":{"a":{"type":"null"}}},{"items":{"type":"null"}}]}`, `{"a":1}`, "/a"},
		{`{"properties":{"u":{"anyOf":[{"properties":{"x":{"type":"null"}}}]}}}`, `{"u":{"x":1}}`, "/u\n/u/x"},
		{`{"properties":{"u":{"oneOf":[{"items":{"type":"null"}}]}}}`, `{"u":[null,1]}`, "/u\n/u/1"},
		{`{"items":{"oneOf":[{"properties":{"k/k":{"const":"a"}}},{"properties":{"k/k":{"const":"b"}}}]}}`, `[{"k/k":"c"}]`, "/0\n/0/k~1k"},
		// white space does not count
		{null, " { \"a\" : null , \"b\" :\n 1 } ", "/b"},
	} {
		if got := paths(schematest.MustCompile(t, c.schema).Validate([]byte(c.doc))); got != c.want {
			t.Errorf("%.100s on %.100s: got\n%q\nwant\n%q", c.schema, c.doc, got, c.want)
		}
	}
}

// TestViolationsInOrder says in which order violations come: missing members in
// the order of required, then those present in the order of the payload, then
// combinators.
func TestViolationsInOrder(t *testing.T) {
	for _, c := range []struct{ schema, doc, want string }{
		{`{"required":["z","a","m"]}`, `{}`, "/z\n/a\n/m"},
		{`{"required":["z","a","m"]}`, `{"a":1}`, "/z\n/m"},
		{`{"properties":{"a":false,"b":false,"c":false}}`, `{"c":1,"a":1,"b":1}`, "/c\n/a\n/b"},
		{`{"properties":{"a":false},"additionalProperties":false}`, `{"x":1,"a":1,"y":1}`, "/x\n/a\n/y"},
		{`{"required":["r"],"properties":{"a":{"required":["s"]}},"additionalProperties":false}`, `{"y":1,"a":{}}`, "/r\n/y\n/a/s"},
		{`{"minItems":9,"uniqueItems":true,"items":false}`, `[1,1]`, "\n/1\n/0\n/1"},
		{`{"items":{"properties":{"a":false},"required":["b"]}}`, `[{"a":1},{"b":1},{"a":1,"b":1}]`, "/0/b\n/0/a\n/2/a"},
		{`{"allOf":[{"properties":{"b":false}},{"properties":{"a":false}}]}`, `{"a":1,"b":1}`, "/b\n/a"},
		{`{"properties":{"a":false},"allOf":[{"required":["z"]}]}`, `{"a":1}`, "/a\n/z"},
		{`{"properties":{"a":false},"not":{},"anyOf":[{"required":["z"]}]}`, `{"a":1}`, "/a\n\n/z\n"},
		{`{"properties":{"a":{"properties":{"b":false}},"c":false}}`, `{"c":0,"a":{"b":0}}`, "/c\n/a/b"},
	} {
		if got := paths(schematest.MustCompile(t, c.schema).Validate([]byte(c.doc))); got != c.want {
			t.Errorf("%s on %s: got\n%q\nwant\n%q", c.schema, c.doc, got, c.want)
		}
	}
}

// TestMessages has the exact sentence for each keyword, with what makes it odd:
// texts that are shortened, spellings that are kept, and counts.
func TestMessages(t *testing.T) {
	long := strings.Repeat("p", 300)
	for _, c := range []struct{ schema, doc, want string }{
		{`{"type":["integer","null","array"]}`, `"x"`, "expected type integer|null|array but got string"},
		{`{"type":["integer","number"]}`, `"x"`, "expected type integer|number but got string"},
		{`{"type":"object"}`, `null`, "expected type object but got null"},
		{`{"type":"object"}`, `true`, "expected type object but got boolean"},
		{`{"type":"string"}`, `{}`, "expected type string but got object"},
		{`{"type":"integer"}`, `1.5`, "expected type integer but got number"},
		{`{"const":"é\n"}`, `1`, `expected const "é\n"`},
		{`{"const":1.50}`, `1`, `expected const 1.50`},
		{`{"const":null}`, `1`, `expected const null`},
		{`{"const":"` + long + `"}`, `1`, `expected const "` + long[:199] + `…`},
		{`{"enum":[ 1 , "x" , [ 2 ] ]}`, `0`, `value not in enum [1,"x",[2]]`},
		{`{"enum":["` + long + `"]}`, `0`, `value not in enum […]`},
		{`{"enum":["a","` + long + `"]}`, `0`, `value not in enum ["a",…]`},
		{`{"minLength":1}`, `""`, "string length 0 < minLength 1"},
		{`{"minLength":2.0}`, `"é"`, "string length 1 < minLength 2"},
		{`{"maxLength":0}`, `"日本"`, "string length 2 > maxLength 0"},
		{`{"pattern":"^a/b$"}`, `""`, "string does not match pattern /^a/b$/"},
		{`{"pattern":"` + long + `"}`, `""`, "string does not match pattern /" + long[:200] + "…/"},
		{`{"format":"uri-reference"}`, `" "`, "format uri-reference: not a URI reference"},
		{`{"minimum":1.50}`, `1`, "number < minimum 1.50"},
		{`{"minimum":1e2}`, `1`, "number < minimum 1e2"},
		{`{"maximum":-0.0}`, `1`, "number > maximum -0.0"},
		{`{"exclusiveMinimum":1}`, `1`, "number <= exclusiveMinimum 1"},
		{`{"exclusiveMaximum":1}`, `1`, "number >= exclusiveMaximum 1"},
		{`{"maximum":` + strings.Repeat("1", 300) + `}`, `1e300`, "number > maximum " + strings.Repeat("1", 200) + "…"},
		{`{"required":["a\"b"]}`, `{}`, `missing required property "a\"b"`},
		{`{"required":["é\n"]}`, `{}`, `missing required property "é\n"`},
		{`{"additionalProperties":false}`, `{"a\nb":1}`, `additional property "a\nb" is not allowed`},
		{`{"additionalProperties":false}`, `{"\u0000":1}`, `additional property "\x00" is not allowed`},
		{`{"minItems":2}`, `[1]`, "array length 1 < minItems 2"},
		{`{"maxItems":0}`, `[1]`, "array length 1 > maxItems 0"},
		{`{"uniqueItems":true}`, `[1,1]`, "duplicate item"},
		{`{"items":false}`, `[1]`, "schema `false` rejects all values"},
		{`{"oneOf":[true,true,true]}`, `1`, "oneOf matched 3 schemas (expected exactly 1)"},
		{`{"not":{}}`, `1`, "not-schema matched"},
	} {
		got := schematest.MustCompile(t, c.schema).Validate([]byte(c.doc))
		if len(got) != 1 || got[0].Message != c.want {
			t.Errorf("%.120s on %s: got\n%s\nwant\n%s", c.schema, c.doc, render(got), c.want)
		}
	}
}

// TestCausesOfCombinators says what a failing union lists beside itself.
func TestCausesOfCombinators(t *testing.T) {
	tagged := `{"oneOf":[{"properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k","v"]},{"properties":{"k":{"enum":["b","c"]},"v":{"type":"string"}},"required":["k"]}]}`
	for _, c := range []struct{ name, schema, doc, want string }{
		{"the tag picks the branch", tagged, `{"k":"c","v":1}`, "\n/v"},
		{"the tag comes last", tagged, `{"v":1,"k":"b"}`, "\n/v"},
		{"the tag is of another kind", tagged, `{"k":1}`, "\n/k"},
		{"the tag is unknown, whatever else is wrong", tagged, `{"k":"z","v":[]}`, "\n/k"},
		{"a tagged branch lacks a member", tagged, `{"k":"a"}`, "\n/v"},
		{"the kind picks the branch", `{"anyOf":[{"type":"string","minLength":2},{"type":"array","minItems":1},{"type":"object","required":["a"]}]}`, `{}`, "\n/a"},
		{"no branch takes the kind", `{"anyOf":[{"type":"string"},{"type":"array"}]}`, `1`, "\n"},
		{"the first of equals", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "\n/a"},
		{"the one that got furthest", `{"anyOf":[{"items":{"type":"null"}},{"items":{"type":"integer"}}]}`, `[1,2,"x"]`, "\n/2"},
		{"several match, no cause", `{"oneOf":[{"type":"integer"},{"minimum":0},{"properties":{"a":false}}]}`, `1`, ""},
		{"a union in a union", `{"anyOf":[{"anyOf":[{"properties":{"a":{"type":"null"}}}]}]}`, `{"a":1}`, "\n\n/a"},
		{"a union behind a reference", `{"$ref":"#/definitions/u","definitions":{"u":{"oneOf":[{"type":"array","items":false}]}}}`, `[1]`, "\n/0"},
	} {
		if got := paths(schematest.MustCompile(t, c.schema).Validate([]byte(c.doc))); got != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
}

// TestWherePathsAreCut measures names and paths just below, at and above the
// bounds that Violation documents.
func TestWherePathsAreCut(t *testing.T) {
	closed := schematest.MustCompile(t, `{"additionalProperties":false}`)
	for _, c := range []struct {
		name, path, shown string
	}{
		{strings.Repeat("a", 64), strings.Repeat("a", 64), strings.Repeat("a", 64)},
		{strings.Repeat("a", 65), strings.Repeat("a", 65), strings.Repeat("a", 64) + "…"},
		{strings.Repeat("a", 128), strings.Repeat("a", 128), strings.Repeat("a", 64) + "…"},
		{strings.Repeat("a", 129), strings.Repeat("a", 128) + "…", strings.Repeat("a", 64) + "…"},
		{strings.Repeat("é", 32), strings.Repeat("é", 32), strings.Repeat("é", 32)},
		{"a" + strings.Repeat("é", 32), "a" + strings.Repeat("é", 32), "a" + strings.Repeat("é", 31) + "…"},
		{strings.Repeat("é", 65), strings.Repeat("é", 64) + "…", strings.Repeat("é", 32) + "…"},
		{"a" + strings.Repeat("日", 43), "a" + strings.Repeat("日", 42) + "…", "a" + strings.Repeat("日", 21) + "…"},
		{strings.Repeat("😀", 33), strings.Repeat("😀", 32) + "…", strings.Repeat("😀", 16) + "…"},
		{strings.Repeat("~", 128), strings.Repeat("~0", 128), strings.Repeat("~", 64) + "…"},
		{strings.Repeat("/", 200), strings.Repeat("~1", 128) + "…", strings.Repeat("/", 64) + "…"},
	} {
		got := closed.Validate([]byte(`{"` + c.name + `":1}`))
		want := schema.Violation{Path: "/" + c.path, Message: `additional property "` + c.shown + `" is not allowed`, Keyword: schema.KeywordAdditionalProperties}
		if len(got) != 1 || got[0] != want {
			t.Errorf("a name of %d bytes: got %+v\nwant %+v", len(c.name), got, want)
		}
		missing := schematest.MustCompile(t, `{"required":["`+c.name+`"]}`).Validate([]byte(`{}`))
		want = schema.Violation{Path: "/" + c.path, Message: `missing required property "` + c.shown + `"`, Keyword: schema.KeywordRequired}
		if len(missing) != 1 || missing[0] != want {
			t.Errorf("a missing name of %d bytes: got %+v\nwant %+v", len(c.name), missing, want)
		}
	}
	deep := schematest.MustCompile(t, `{"$ref":"#/definitions/d","definitions":{"d":{"type":"object","additionalProperties":{"$ref":"#/definitions/d"}}}}`)
	for _, c := range []struct{ levels, name, want int }{
		{16, 127, 2048},
		{17, 127, 2048 + len("…")},
		{16, 128, 2048 + len("…")},
		{1, 128, 129},
		{1024, 1, 2048},
		{1025, 1, 2048 + len("…")},
	} {
		doc := strings.Repeat(`{"`+strings.Repeat("n", c.name)+`":`, c.levels) + "1" + strings.Repeat("}", c.levels)
		got := deep.WithLimits(schema.Limits{MaxDepth: 2000}).Validate([]byte(doc))
		if len(got) != 1 || len(got[0].Path) != c.want || strings.HasSuffix(got[0].Path, "…") != (c.want > 2048) || !utf8.ValidString(got[0].Path) {
			t.Errorf("%d levels of %d bytes: a path of %d, want %d", c.levels, c.name, len(got[0].Path), c.want)
		}
	}
}

// TestTruncation counts what is listed around the limit, and says where the
// list was cut.
func TestTruncation(t *testing.T) {
	flat := schematest.MustCompile(t, `{"items":{"type":"null"}}`)
	ones := func(n int) []byte { return []byte("[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]") }
	for _, c := range []struct{ limit, faults, listed int }{
		{0, 99, 99}, {0, 100, 100}, {0, 101, 100}, {-1, 101, 100}, {1, 1, 1}, {1, 2, 1}, {7, 7, 7}, {7, 8, 7}, {7, 5000, 7}, {150, 149, 149}, {150, 151, 150},
	} {
		s := flat.WithLimits(schema.Limits{MaxViolations: c.limit})
		report, list := s.Check(ones(c.faults)), s.Validate(ones(c.faults))
		cut := c.listed < c.faults
		if len(report.Violations) != c.listed || report.Truncated != cut {
			t.Errorf("limit %d, %d faults: %d listed, truncated %v", c.limit, c.faults, len(report.Violations), report.Truncated)
		}
		last := list[len(list)-1]
		if (last.Keyword == schema.KeywordLimit) != cut || len(list) != c.listed+map[bool]int{true: 1}[cut] {
			t.Errorf("limit %d, %d faults: Validate lists %d, the last %+v", c.limit, c.faults, len(list), last)
		}
		if want := fmt.Sprintf("more than %d violations; the rest is not listed", c.listed); cut && last.Message != want {
			t.Errorf("limit %d: %q, want %q", c.limit, last.Message, want)
		}
		for i, v := range report.Violations {
			if v.Path != fmt.Sprintf("/%d", i) {
				t.Fatalf("limit %d: violation %d is at %s", c.limit, i, v.Path)
			}
		}
	}
	// A limit met at the very end cuts nothing off, wherever the end is.
	for _, c := range []struct {
		schema, doc string
		limit       int
		truncated   bool
	}{
		{`{"required":["a","b"]}`, `{}`, 2, false},
		{`{"required":["a","b","c"]}`, `{}`, 2, true},
		{`{"required":["a"],"additionalProperties":false}`, `{"b":1}`, 2, false},
		{`{"required":["a"],"additionalProperties":false}`, `{"b":1,"c":1}`, 2, true},
		{`{"properties":{"a":false,"b":{}}}`, `{"a":1,"b":1}`, 1, false},
		{`{"minItems":3,"uniqueItems":true}`, `[1,1]`, 1, true},
		{`{"allOf":[false,false]}`, `1`, 2, false},
		{`{"anyOf":[{"type":"null"}]}`, `1`, 2, false},
		{`{"anyOf":[{"type":"null"}]}`, `1`, 1, true},
		{`{"allOf":[{"minimum":2},{"not":{}}]}`, `1`, 1, true},
	} {
		report := schematest.MustCompile(t, c.schema).WithLimits(schema.Limits{MaxViolations: c.limit}).Check([]byte(c.doc))
		if report.Truncated != c.truncated || len(report.Violations) != c.limit {
			t.Errorf("%s on %s, limit %d: %+v", c.schema, c.doc, c.limit, report)
		}
	}
}

// TestSyntaxErrors says at which byte a text stops being strict JSON, whatever
// the schema.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		doc    string
		offset int
		msg    string
	}{
		{``, 0, "unexpected end of input"},
		{`  `, 2, "unexpected end of input"},
		{`{`, 1, "unexpected end of input"},
		{`{"a"`, 4, "unexpected end of input"},
		{`{"a":`, 5, "unexpected end of input"},
		{`{"a":1`, 6, "unexpected end of input"},
		{`[1`, 2, "unexpected end of input"},
		{`{"a":1,"a":2}`, 7, "duplicate key"},
		{`{"a":{"b":1,"\u0062":2}}`, 12, "duplicate key"},
		{`{"a":1,}`, 7, "expected a member name in double quotes"},
		{`1 2`, 2, "unexpected data after the value"},
		{`{}x`, 2, "unexpected data after the value"},
	} {
		for _, src := range []string{`{}`, `{"type":"null"}`, `{"anyOf":[{"minimum":1},{"maxItems":0}]}`} {
			report := schematest.MustCompile(t, src).Check([]byte(c.doc))
			if report.Verdict != schema.Malformed || report.Syntax == nil || len(report.Violations) > 0 {
				t.Errorf("%s on %q: %+v", src, c.doc, report)
				continue
			}
			if report.Syntax.Offset != c.offset || report.Syntax.Msg != c.msg {
				t.Errorf("%s on %q: %d %q, want %d %q", src, c.doc, report.Syntax.Offset, report.Syntax.Msg, c.offset, c.msg)
			}
		}
	}
	s := schematest.MustCompile(t, `{}`)
	for _, c := range []struct {
		limits schema.Limits
		doc    string
		want   string
	}{
		{schema.Limits{MaxBytes: 4}, `1234`, ""},
		{schema.Limits{MaxBytes: 4}, `12345`, "invalid JSON at byte 4: longer than the limit of 4 bytes"},
		{schema.Limits{MaxBytes: 4}, `[[[[[`, "invalid JSON at byte 4: longer than the limit of 4 bytes"},
		{schema.Limits{MaxDepth: 1}, `[1]`, ""},
		{schema.Limits{MaxDepth: 1}, `{"a":1}`, ""},
		{schema.Limits{MaxDepth: 1}, `[[]]`, "invalid JSON at byte 1: nested too deeply"},
		{schema.Limits{MaxDepth: 2}, `[1,{"a":{}}]`, "invalid JSON at byte 8: nested too deeply"},
	} {
		var got string
		if list := s.WithLimits(c.limits).Validate([]byte(c.doc)); len(list) > 0 {
			got = list[0].Message
		}
		if got != c.want {
			t.Errorf("%+v on %s: got %q, want %q", c.limits, c.doc, got, c.want)
		}
	}
}

func TestNamesOfAnswers(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{schema.Valid, "valid"}, {schema.Invalid, "invalid"}, {schema.Malformed, "malformed"}, {schema.Verdict(0), "Verdict(0)"}, {schema.Verdict(9), "Verdict(9)"},
		{contain.Proven, "proven"}, {contain.Refuted, "refuted"}, {contain.Undecided, "undecided"}, {contain.Answer(0), "Answer(0)"}, {contain.Answer(4), "Answer(4)"},
		{contain.SideA, "a"}, {contain.SideB, "b"}, {schema.KeywordNone, ""}, {schema.KeywordUnevaluatedItems + 1, "Keyword(32)"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
