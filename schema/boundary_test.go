package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema/internal/schematest"
)

// broken lists the keywords that a payload breaks, in the order of the report.
func broken(t *testing.T, src, doc string) string {
	t.Helper()
	s := schematest.MustCompile(t, src)
	checkConsistent(t, s, []byte(doc))
	var all []string
	for _, v := range s.Validate([]byte(doc)) {
		all = append(all, v.Keyword.String())
	}
	return strings.Join(all, " ")
}

// TestLengthsCountCodePoints measures strings by both bounds and in two
// spellings.
func TestLengthsCountCodePoints(t *testing.T) {
	for _, c := range []struct {
		name, text string
		length     int
	}{
		{"nothing", "", 0},
		{"ASCII", "abc", 3},
		{"two bytes", "é", 1},
		{"three bytes", "日本", 2},
		{"four bytes", "😀", 1},
		{"a combining accent", "e\u0301", 2},
		{"a family joined", "👩\u200d👩\u200d👧", 5},
		{"a flag", "🇫🇷", 2},
		{"a skin tone", "👍🏽", 2},
		{"the highest code point", "\U0010FFFF", 1},
		{"the first beyond the basic plane", "\U00010000", 1},
		{"the last of the basic plane", "\uFFFF", 1},
		{"a replacement character", "\uFFFD", 1},
		{"zero", "\x00", 1},
		{"controls", "\x01\n\t\x7f", 4},
		{"line separators", "\u2028\u2029", 2},
		{"a byte order mark within", "\ufeffx", 2},
		{"quotes and backslashes", `"\"\\`, 5},
		{"a slash", "/", 1},
		{"of each width", "aé日😀", 4},
		{"a text that looks like an escape", `\u0061`, 6},
		{"spaces", "   ", 3},
	} {
		var escaped strings.Builder
		for _, r := range c.text {
			if r > 0xFFFF {
				fmt.Fprintf(&escaped, `\u%04x\u%04X`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
			} else {
				fmt.Fprintf(&escaped, `\u%04x`, r)
			}
		}
		plain := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", `\u0000`, "\x01", `\u0001`).Replace(c.text)
		for _, doc := range []string{`"` + plain + `"`, `"` + escaped.String() + `"`} {
			for _, b := range []struct {
				keyword string
				bound   int
				want    string
			}{
				{"minLength", c.length, ""},
				{"minLength", c.length + 1, "minLength"},
				{"maxLength", c.length, ""},
				{"maxLength", c.length - 1, "maxLength"},
			} {
				if b.bound < 0 {
					continue
				}
				if got := broken(t, fmt.Sprintf(`{%q:%d}`, b.keyword, b.bound), doc); got != b.want {
					t.Errorf("%s, %s against %s %d: broke %q", c.name, doc, b.keyword, b.bound, got)
				}
			}
		}
	}
}

// TestCountsInAnySpelling: draft-07 takes 2.0 for an integer wherever it asks
// for one.
func TestCountsInAnySpelling(t *testing.T) {
	for _, c := range []struct {
		count string
		size  int
	}{
		{"0", 0}, {"-0", 0}, {"0.0", 0}, {"0e99", 0}, {"2", 2}, {"2.0", 2}, {"2e0", 2}, {"0.2e1", 2}, {"20e-1", 2}, {"200e-2", 2}, {"1e1", 10}, {"12", 12}, {"1.2E+1", 12},
	} {
		for _, size := range []int{c.size - 1, c.size, c.size + 1} {
			if size < 0 {
				continue
			}
			text, list := `"`+strings.Repeat("x", size)+`"`, "["+strings.TrimSuffix(strings.Repeat("0,", size), ",")+"]"
			for keyword, doc := range map[string]string{"minLength": text, "maxLength": text, "minItems": list, "maxItems": list} {
				want := ""
				if strings.HasPrefix(keyword, "min") && size < c.size || strings.HasPrefix(keyword, "max") && size > c.size {
					want = keyword
				}
				if got := broken(t, `{"`+keyword+`":`+c.count+`}`, doc); got != want {
					t.Errorf("%s %s on %s: broke %q", keyword, c.count, doc, got)
				}
			}
		}
	}
	for _, huge := range []string{"1e18", "1e19", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e400", "1e999999999999999999"} {
		for keyword, want := range map[string]string{"minLength": "minLength", "maxLength": ""} {
			if got := broken(t, `{"`+keyword+`":`+huge+`}`, `"x"`); got != want {
				t.Errorf("%s %s: broke %q", keyword, huge, got)
			}
		}
		for keyword, want := range map[string]string{"minItems": "minItems", "maxItems": ""} {
			if got := broken(t, `{"`+keyword+`":`+huge+`}`, `[1]`); got != want {
				t.Errorf("%s %s: broke %q", keyword, huge, got)
			}
		}
	}
}

// TestKeywordsLeaveOtherKindsAlone: an assertion about one kind of value says
// nothing about values of the others (draft-07 validation section 3.2).
func TestKeywordsLeaveOtherKindsAlone(t *testing.T) {
	values := map[string][]string{
		"null": {"null"}, "boolean": {"true", "false"}, "number": {"0", "-1.5", "1e400"}, "string": {`""`, `"x"`, `"日"`},
		"array": {"[]", "[1,1]"}, "object": {"{}", `{"a":1}`},
	}
	for _, c := range []struct{ kind, rules string }{
		{"number", `"minimum":1e500`},
		{"number", `"maximum":-1e500`},
		{"number", `"exclusiveMinimum":1e500`},
		{"number", `"exclusiveMaximum":-1e500`},
		{"string", `"minLength":5`},
		{"string", `"maxLength":0,"minLength":1`},
		{"string", `"pattern":"^never$"`},
		{"string", `"format":"uuid"`},
		{"string", `"format":"uri"`},
		{"string", `"format":"email","pattern":"^q"`},
		{"string", `"format":"date-time"`},
		{"array", `"minItems":5`},
		{"array", `"maxItems":0,"minItems":1`},
		{"array", `"items":false,"minItems":1`},
		{"array", `"uniqueItems":true,"minItems":2,"items":{"type":"null"}`},
		{"object", `"required":["z"]`},
		{"object", `"properties":{"z":false},"required":["z"]`},
		{"object", `"additionalProperties":false,"required":["z"]`},
	} {
		typed := `{` + c.rules + `,"type":"` + c.kind + `"}`
		for kind, docs := range values {
			for _, doc := range docs {
				if got := broken(t, `{`+c.rules+`}`, doc); (got == "") != (kind != c.kind) {
					t.Errorf("%s on the %s %s: broke %q", c.rules, kind, doc, got)
				}
				// With the type beside it, the type is what other values break, alone.
				if got := broken(t, typed, doc); (got == "type") != (kind != c.kind) || got == "" {
					t.Errorf("%s on the %s %s: broke %q", typed, kind, doc, got)
				}
				if got := broken(t, `{"not":{`+c.rules+`}}`, doc); (got == "not") != (kind != c.kind) {
					t.Errorf("not %s on the %s %s: broke %q", c.rules, kind, doc, got)
				}
			}
		}
	}
}

// TestTypeMatrix holds every type to a value of every kind.
func TestTypeMatrix(t *testing.T) {
	accepts := map[string][]string{
		"null": {"null"}, "boolean": {"true", "false"}, "integer": {"0", "-7", "1.0", "1e400"}, "number": {"0", "-7", "1.0", "1e400", "0.5", "1e-400"},
		"string": {`""`, `"null"`, `"1"`}, "array": {"[]", "[null]"}, "object": {"{}", `{"type":"object"}`},
	}
	var names, docs []string
	for name, all := range accepts {
		names = append(names, name)
		docs = append(docs, all...)
	}
	slices.Sort(names)
	for _, doc := range docs {
		for _, one := range names {
			passes := slices.Contains(accepts[one], doc)
			if got := broken(t, `{"type":"`+one+`"}`, doc); (got == "") != passes || !passes && got != "type" {
				t.Errorf("%s on %s: broke %q", one, doc, got)
			}
			for _, two := range names {
				if one == two {
					continue
				}
				either := passes || slices.Contains(accepts[two], doc)
				if got := broken(t, `{"type":["`+one+`","`+two+`"]}`, doc); (got == "") != either {
					t.Errorf("%s or %s on %s: broke %q", one, two, doc, got)
				}
			}
		}
	}
}

// TestKeywordEdges has a row for each edge of a keyword that the tables above do
// not draw; want names the keywords that are broken.
func TestKeywordEdges(t *testing.T) {
	long := strings.Repeat("n", 40)
	var many, all []string
	for i := range 70 {
		many = append(many, fmt.Sprintf(`"p%02d":{"type":"integer"}`, i))
		all = append(all, fmt.Sprintf(`"p%02d":%d`, i, i))
	}
	wide := `"properties":{` + strings.Join(many, ",") + `}`
	words := make([]string, 20)
	for i := range words {
		words[i] = fmt.Sprintf(`"w%d"`, i)
	}
	enum20 := `{"enum":[` + strings.Join(words, ",") + `]}`
	for _, c := range []struct{ schema, doc, want string }{
		// const and enum: equality of draft-07 core section 4.2.3
		{`{"const":null}`, `null`, ""},
		{`{"const":null}`, `false`, "const"},
		{`{"const":null}`, `0`, "const"},
		{`{"const":false}`, `0`, "const"},
		{`{"const":false}`, `null`, "const"},
		{`{"const":0}`, `false`, "const"},
		{`{"const":0}`, `"0"`, "const"},
		{`{"const":"0"}`, `0`, "const"},
		{`{"const":""}`, `""`, ""},
		{`{"const":""}`, `null`, "const"},
		{`{"const":"é"}`, `"\u00e9"`, ""},
		{`{"const":"é"}`, `"e\u0301"`, "const"},
		{`{"const":"\ud83d\ude00"}`, `"😀"`, ""},
		{`{"const":"a/b"}`, `"a\/b"`, ""},
		{`{"const":"A"}`, `"a"`, "const"},
		{`{"const":"a"}`, `"a "`, "const"},
		{`{"const":"a\u0000b"}`, `"a\u0000b"`, ""},
		{`{"const":"a\u0000b"}`, `"a"`, "const"},
		{`{"const":[]}`, `[]`, ""},
		{`{"const":[]}`, `{}`, "const"},
		{`{"const":[]}`, `[[]]`, "const"},
		{`{"const":[[]]}`, `[[]]`, ""},
		{`{"const":[1,2]}`, `[1,2]`, ""},
		{`{"const":[1,2]}`, `[2,1]`, "const"},
		{`{"const":[1,2]}`, `[1,2,3]`, "const"},
		{`{"const":[1,2]}`, `[1]`, "const"},
		{`{"const":[1,"2"]}`, `[1.0,"\u0032"]`, ""},
		{`{"const":{}}`, `{}`, ""},
		{`{"const":{}}`, `[]`, "const"},
		{`{"const":{}}`, `{"a":1}`, "const"},
		{`{"const":{"a":1,"b":2}}`, `{"b":2,"a":1}`, ""},
		{`{"const":{"a":1,"b":2}}`, `{"a":1}`, "const"},
		{`{"const":{"a":1,"b":2}}`, `{"a":2,"b":1}`, "const"},
		{`{"const":{"a":1,"b":2}}`, `{"a":1,"b":2,"c":3}`, "const"},
		{`{"const":{"a":{"b":[1]}}}`, `{"a":{"b":[1e0]}}`, ""},
		{`{"const":{"a":{"b":[1]}}}`, `{"a":{"b":1}}`, "const"},
		{`{"const":{"":0}}`, `{"":0}`, ""},
		{`{"const":{"":0}}`, `{}`, "const"},
		{`{"enum":[null]}`, `null`, ""},
		{`{"enum":[null]}`, `{}`, "enum"},
		{`{"enum":[1,true]}`, `true`, ""},
		{`{"enum":[1,true]}`, `false`, "enum"},
		{`{"enum":["a",["a"],{"a":"a"}]}`, `["a"]`, ""},
		{`{"enum":["a",["a"],{"a":"a"}]}`, `{"a":"a"}`, ""},
		{`{"enum":["a",["a"],{"a":"a"}]}`, `{"a":["a"]}`, "enum"},
		{`{"enum":["a",["a"],{"a":"a"}]}`, `[["a"]]`, "enum"},
		{enum20, `"w0"`, ""},
		{enum20, `"w19"`, ""},
		{enum20, `"\u0077\u0031"`, ""},
		{enum20, `"w20"`, "enum"},
		{enum20, `"w"`, "enum"},
		{enum20, `""`, "enum"},
		{enum20, `1`, "enum"},
		{`{"const":1,"enum":[1,2]}`, `1`, ""},
		{`{"const":1,"enum":[1,2]}`, `2`, "const"},
		{`{"const":3,"enum":[1,2]}`, `1`, "const"},
		{`{"const":3,"enum":[1,2]}`, `3`, "enum"},
		{`{"const":3,"enum":[1,2]}`, `4`, "const enum"},
		{`{"type":"string","const":1}`, `1`, "type"},
		{`{"type":"string","const":1}`, `"1"`, "const"},

		// strings: a wrong length is judged no further
		{`{"minLength":2,"pattern":"^b"}`, `"a"`, "minLength"},
		{`{"maxLength":2,"pattern":"^b"}`, `"aaa"`, "maxLength"},
		{`{"maxLength":2,"pattern":"^b"}`, `"aa"`, "pattern"},
		{`{"pattern":"^b","format":"uuid"}`, `"aa"`, "pattern format"},
		{`{"minLength":37,"format":"uuid"}`, `"2eb8aa08-aa98-11ea-b4aa-73b441d16380"`, "minLength"},
		{`{"minLength":3,"maxLength":2}`, `"aaa"`, "maxLength"},
		{`{"minLength":3,"maxLength":2}`, `"aa"`, "minLength"},
		{`{"pattern":""}`, `""`, ""},
		{`{"pattern":"^$"}`, `""`, ""},
		{`{"pattern":"^$"}`, `"\n"`, "pattern"},
		{`{"pattern":"^.$"}`, `"\n"`, "pattern"},
		{`{"pattern":"^.$"}`, `"\u2028"`, "pattern"},
		{`{"pattern":"^.$"}`, `"😀"`, ""},
		{`{"pattern":"^..$"}`, `"😀"`, "pattern"},
		{`{"pattern":"^[^a]$"}`, `"\n"`, ""},
		{`{"pattern":"a$"}`, `"a\n"`, "pattern"},
		{`{"pattern":"^a"}`, `"b\na"`, "pattern"},
		{`{"pattern":"^\\d$"}`, `"٣"`, "pattern"},
		{`{"pattern":"^\\w$"}`, `"é"`, "pattern"},
		{`{"pattern":"^\\s$"}`, `"\u00a0"`, ""},
		{`{"pattern":"^\\s$"}`, `"\ufeff"`, ""},
		{`{"pattern":"^\\p{Lu}$"}`, `"É"`, ""},
		{`{"pattern":"^\\p{Lu}$"}`, `"é"`, "pattern"},
		{`{"pattern":"^\\u{1F600}$"}`, `"\ud83d\ude00"`, ""},
		{`{"pattern":"b"}`, `"abc"`, ""},

		// arrays
		{`{"minItems":0}`, `[]`, ""},
		{`{"maxItems":0}`, `[]`, ""},
		{`{"maxItems":0}`, `[null]`, "maxItems"},
		{`{"minItems":2,"maxItems":1}`, `[]`, "minItems"},
		{`{"minItems":3,"maxItems":1}`, `[1,2]`, "minItems maxItems"},
		{`{"minItems":2,"items":{"type":"null"}}`, `[1]`, "minItems type"},
		{`{"maxItems":1,"uniqueItems":true,"items":{"type":"null"}}`, `[1,1]`, "maxItems uniqueItems type type"},
		{`{"uniqueItems":true}`, `[1,1,1,1]`, "uniqueItems"},
		{`{"uniqueItems":true}`, `[1,2,1,2]`, "uniqueItems"},
		{`{"uniqueItems":true}`, `["1",1,true,null,[1],{"1":1},"true","null"]`, ""},
		{`{"uniqueItems":true}`, `[[],{}]`, ""},
		{`{"uniqueItems":true}`, `[[],[[]],[[[]]]]`, ""},
		{`{"uniqueItems":true}`, `[{},{}]`, "uniqueItems"},
		{`{"uniqueItems":true}`, `[{"a":1},{"b":1},{"a":2}]`, ""},
		{`{"uniqueItems":true}`, `[{"a":[1,{"b":2}]},{"a":[1.0,{"b":2e0}]}]`, "uniqueItems"},
		{`{"uniqueItems":true}`, `["é","e\u0301"]`, ""},
		{`{"uniqueItems":true}`, `["é","\u00E9"]`, "uniqueItems"},
		{`{"uniqueItems":true}`, `["/","\/"]`, "uniqueItems"},
		{`{"uniqueItems":true}`, `["","\u0000"]`, ""},
		{`{"items":true}`, `[1,"x",[]]`, ""},
		{`{"items":false}`, `[1,2]`, "false false"},
		{`{"items":{"items":{"type":"null"}}}`, `[[],[null],1]`, ""},
		{`{"items":{"items":{"type":"null"}}}`, `[[],[null,1],[1]]`, "type type"},

		// objects
		{`{"required":[""]}`, `{"":1}`, ""},
		{`{"required":[""]}`, `{"a":1}`, "required"},
		{`{"required":["é"]}`, `{"\u00e9":1}`, ""},
		{`{"required":["é"]}`, `{"e\u0301":1}`, "required"},
		{`{"required":["a"]}`, `{"a":null}`, ""},
		{`{"required":["a"]}`, `{"A":1}`, "required"},
		{`{"required":["a"]}`, `{"b":{"a":1}}`, "required"},
		{`{"required":["__proto__","hasOwnProperty"]}`, `{}`, "required required"},
		{`{"required":["a","b","c"]}`, `{"b":1}`, "required required"},
		{`{"required":["` + long + `"]}`, `{"` + long + `":1}`, ""},
		{`{"required":["` + long + `"]}`, `{"` + long + `n":1}`, "required"},
		{`{"properties":{"a":{"type":"null"}}}`, `{"A":1}`, ""},
		{`{"properties":{"a":{"type":"null"}}}`, `{"\u0061":1}`, "type"},
		{`{"properties":{"a":{"type":"null"}}}`, `{"b":{"a":1}}`, ""},
		{`{"properties":{"` + long + `":{"type":"null"}}}`, `{"` + long + `":1}`, "type"},
		{`{"properties":{"a":true,"b":false}}`, `{"a":1}`, ""},
		{`{"properties":{"a":true,"b":false}}`, `{"b":null}`, "false"},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1}`, ""},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b":2,"c":3}`, "additionalProperties additionalProperties"},
		{`{"properties":{"a":{}},"additionalProperties":{"type":"null"}}`, `{"a":1,"b":null}`, ""},
		{`{"properties":{"a":{}},"additionalProperties":{"type":"null"}}`, `{"a":1,"b":2}`, "type"},
		{`{"additionalProperties":true}`, `{"a":1}`, ""},
		{`{"additionalProperties":{}}`, `{"a":1}`, ""},
		{`{"additionalProperties":{"additionalProperties":false}}`, `{"a":{}}`, ""},
		{`{"additionalProperties":{"additionalProperties":false}}`, `{"a":{"b":1}}`, "additionalProperties"},
		{`{"allOf":[{"properties":{"a":{}}}],"additionalProperties":false}`, `{"a":1}`, "additionalProperties"},
		{`{"required":["a"],"properties":{"b":{"type":"null"}},"additionalProperties":false}`, `{"b":1,"c":2}`, "required type additionalProperties"},
		{`{` + wide + `}`, `{` + strings.Join(all, ",") + `}`, ""},
		{`{` + wide + `,"required":["p00","p63","p64","p69"]}`, `{` + strings.Join(all, ",") + `}`, ""},
		{`{` + wide + `,"required":["p63"]}`, `{"p62":1,"p64":1}`, "required"},
		{`{` + wide + `,"required":["p64"]}`, `{"p63":1,"p65":1}`, "required"},
		{`{` + wide + `,"required":["p69"]}`, `{"p69":1}`, ""},
		{`{` + wide + `,"required":["p69"]}`, `{"p68":1}`, "required"},
		{`{` + wide + `,"additionalProperties":false}`, `{"p70":1}`, "additionalProperties"},
		{`{` + wide + `}`, `{"p69":"x","p00":"x"}`, "type type"},
		{`{` + wide + `}`, `{"p65":1,"p65":2}`, "syntax"},

		// combinators
		{`{"allOf":[true,{}]}`, `1`, ""},
		{`{"allOf":[true,false]}`, `1`, "false"},
		{`{"anyOf":[false,false]}`, `1`, "anyOf false"},
		{`{"anyOf":[false,true]}`, `1`, ""},
		{`{"oneOf":[true,true]}`, `1`, "oneOf"},
		{`{"oneOf":[true,false]}`, `1`, ""},
		{`{"oneOf":[true]}`, `1`, ""},
		{`{"oneOf":[false]}`, `1`, "oneOf false"},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `1.5`, ""},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `1`, "oneOf"},
		{`{"oneOf":[{"const":1},{"const":1.0},{"const":2}]}`, `1`, "oneOf"},
		{`{"oneOf":[{"const":1},{"const":1.0},{"const":2}]}`, `2`, ""},
		{`{"not":true}`, `1`, "not"},
		{`{"not":false}`, `1`, ""},
		{`{"not":{"not":{"type":"null"}}}`, `null`, ""},
		{`{"not":{"not":{"type":"null"}}}`, `1`, "not"},
		{`{"not":{"anyOf":[{"type":"null"},{"const":1}]}}`, `1`, "not"},
		{`{"not":{"allOf":[{"type":"integer"},{"minimum":1}]}}`, `0`, ""},
		{`{"type":"integer","not":{"minimum":1}}`, `1.5`, "type"},
		{`{"anyOf":[{"type":"null"}],"oneOf":[{"type":"string"}],"allOf":[{"type":"array"}],"not":{"type":"integer"}}`, `1`, "oneOf type anyOf type type not"},

		// references
		{`{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"minimum":1}}}`, `0`, "minimum"},
		{`{"$ref":"#/definitions/","definitions":{"":{"minimum":1}}}`, `0`, "minimum"},
		{`{"$ref":"#/definitions/%C3%A9","definitions":{"é":{"minimum":1}}}`, `0`, "minimum"},
		{`{"$ref":"#/definitions/a~01","definitions":{"a~1":{"minimum":1}}}`, `0`, "minimum"},
		{`{"$ref":"#/definitions/a~1b","definitions":{"a/b":{"minimum":1}}}`, `0`, "minimum"},
		{`{"properties":{"a":{"$ref":"#"}},"type":"object"}`, `{"a":{"a":{"a":1}}}`, "type"},
		{`{"items":{"$ref":"#"},"maxItems":1}`, `[[[[]]]]`, ""},
		{`{"items":{"$ref":"#"},"maxItems":1}`, `[[[[1,2]]]]`, "maxItems"},
		{`{"properties":{"$ref":{"type":"null"}}}`, `{"$ref":1}`, "type"},

		// annotations assert nothing
		{`{"default":1,"examples":["x"],"title":"t","description":"d"}`, `null`, ""},
		{`{"definitions":{"a":false}}`, `1`, ""},
	} {
		if got := broken(t, c.schema, c.doc); got != c.want {
			t.Errorf("%.120s on %.120s: broke %q, want %q", c.schema, c.doc, got, c.want)
		}
	}
}
