package schema_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestSemantics says for each keyword which values pass. It needs no data from
// outside, and covers what the official suite leaves open: interplay of
// keywords, values of other kinds, and the borders of each rule.
func TestSemantics(t *testing.T) {
	for _, c := range []struct {
		schema    string
		good, bad []string
	}{
		{`{}`, []string{`null`, `true`, `0`, `""`, `[]`, `{}`, `{"a":[{"b":1}]}`}, nil},
		{`{"not":{}}`, nil, []string{`null`, `0`, `{}`}},

		// type
		{`{"type":"null"}`, []string{`null`}, []string{`0`, `false`, `""`, `[]`, `{}`}},
		{`{"type":"boolean"}`, []string{`true`, `false`}, []string{`0`, `1`, `"true"`, `null`}},
		{`{"type":"integer"}`, []string{`0`, `-7`, `1.0`, `1e2`, `10e-1`, `100000000000000000000000001`, `-0`, `0.0`}, []string{`1.5`, `1e-1`, `"1"`, `0.1e0`, `null`}},
		{`{"type":"number"}`, []string{`0`, `1.5`, `-1e-9`}, []string{`"0"`, `null`, `[0]`}},
		{`{"type":["integer","number"]}`, []string{`1`, `1.5`}, []string{`"1"`}},
		{`{"type":["integer","null"]}`, []string{`1`, `null`}, []string{`1.5`, `"x"`}},
		{`{"type":"string"}`, []string{`""`, `"\u0000"`}, []string{`0`, `[""]`}},
		{`{"type":"array"}`, []string{`[]`}, []string{`{}`, `"[]"`}},
		{`{"type":"object"}`, []string{`{}`}, []string{`[]`, `null`}},

		// const and enum: equality of JSON values
		{`{"const":1}`, []string{`1`, `1.0`, `10e-1`, `0.1E1`}, []string{`true`, `"1"`, `1.0000000000000000001`, `[1]`}},
		{`{"const":false}`, []string{`false`}, []string{`0`, `null`, `[]`}},
		{`{"const":"a\u0062"}`, []string{`"ab"`, `"\u0061b"`}, []string{`"a"`, `"abc"`, `"AB"`}},
		{`{"const":{"a":[1,{"b":null}]}}`, []string{`{"a":[1.0,{"b":null}]}`}, []string{`{"a":[1]}`, `{}`, `{"a":[1,{"b":null}],"c":1}`, `{"a":[{"b":null},1]}`}},
		{`{"const":{"a":1,"b":2}}`, []string{`{"b":2,"a":1}`}, []string{`{"a":2,"b":1}`}},
		{`{"const":[]}`, []string{`[]`, `[ ]`}, []string{`{}`, `[[]]`, `""`}},
		{`{"enum":["low","med",null,3,[1]]}`, []string{`"low"`, `null`, `3.0`, `[1]`, `"\u006cow"`}, []string{`"Low"`, `"lo"`, `0`, `[1,1]`, `[]`}},
		{`{"enum":["a","b","c","d","e","f","g","h","i","j"]}`, []string{`"a"`, `"j"`, `"\u006a"`}, []string{`"k"`, `""`, `1`}},
		{`{"const":"x","enum":["x","y"]}`, []string{`"x"`}, []string{`"y"`, `"z"`}},
		{`{"type":"string","enum":["a",1]}`, []string{`"a"`}, []string{`1`}},

		// strings
		{`{"minLength":2,"maxLength":3}`, []string{`"ab"`, `"日本語"`, `"😀😀"`, `"\ud83d\ude00x"`, `1`, `[]`}, []string{`""`, `"a"`, `"abcd"`, `"😀"`, `"\u00e9"`}},
		{`{"minLength":3}`, []string{`"a\nb"`, `"\\\\\\"`}, []string{`"\n\n"`, `"日本"`, `"éé"`}},
		{`{"maxLength":0}`, []string{`""`}, []string{`" "`}},
		{`{"pattern":"^a+$"}`, []string{`"a"`, `"\u0061a"`, `1`}, []string{`""`, `"ab"`, `"a\n"`}},
		{`{"pattern":"b"}`, []string{`"abc"`}, []string{`"ac"`}},
		{`{"format":"uuid","minLength":1}`, []string{`"2eb8aa08-aa98-11ea-b4aa-73b441d16380"`, `7`}, []string{`""`, `"x"`}},

		// numbers
		{`{"minimum":1.5}`, []string{`1.5`, `2`, `15e-1`, `"0"`}, []string{`1.49999999999999999999`, `1`, `-2`}},
		{`{"maximum":100}`, []string{`100`, `1e2`, `-1e99`}, []string{`100.0000000000000000001`, `1e3`}},
		{`{"exclusiveMinimum":0}`, []string{`1`, `1e-400`}, []string{`0`, `-0.0`, `-1`}},
		{`{"exclusiveMaximum":-1}`, []string{`-2`, `-1.00000000000000000001`}, []string{`-1`, `0`, `-0.99`}},
		{`{"minimum":18446744073709551616}`, []string{`18446744073709551616`, `1.8446744073709551616e19`}, []string{`18446744073709551615`}},
		{`{"minimum":-9223372036854775809,"maximum":9223372036854775808}`, []string{`-9223372036854775809`, `9223372036854775808`}, []string{`-9223372036854775810`, `9223372036854775809`}},

		// arrays
		{`{"items":{"type":"integer"}}`, []string{`[]`, `[1,2]`, `{"a":"x"}`, `"x"`}, []string{`[1,"x"]`, `[[1]]`}},
		{`{"items":false}`, []string{`[]`}, []string{`[1]`}},
		{`{"items":true,"minItems":1,"maxItems":2}`, []string{`[1]`, `[[],{}]`, `{}`}, []string{`[]`, `[1,2,3]`}},
		{`{"uniqueItems":true}`, []string{`[]`, `[1,"1",true,null,[1],{"a":1}]`, `[[1,2],[2,1]]`, `[0,false,"",null,[],{}]`, `{"a":1}`, `[{"a":1},{"a":2}]`},
			[]string{`[1,1]`, `[1,2,1.0]`, `["a","\u0061"]`, `[{"a":1,"b":2},{"b":2.0,"a":1}]`, `[[],[]]`, `[null,null]`}},
		{`{"uniqueItems":false}`, []string{`[1,1]`}, nil},
		{`{"items":{"uniqueItems":true},"uniqueItems":true}`, []string{`[[1,2],[2,1],[1]]`}, []string{`[[1,1]]`, `[[1],[1]]`}},
		{`{"items":{"items":{"uniqueItems":true}}}`, []string{`[[["a"],["a"]],[["a"]]]`}, []string{`[[["a","a"]]]`}},

		// objects
		{`{"properties":{"a":{"type":"integer"},"b":{}}}`, []string{`{}`, `{"a":1}`, `{"b":"x","a":1}`, `{"c":"x"}`, `[]`}, []string{`{"a":"x"}`, `{"b":1,"a":null}`}},
		{`{"required":["a","b"]}`, []string{`{"a":1,"b":null}`, `{"b":1,"x":0,"a":1}`, `1`}, []string{`{}`, `{"a":1}`, `{"A":1,"b":1}`}},
		{`{"required":["constructor","toString"]}`, []string{`{"constructor":1,"toString":2}`}, []string{`{}`, `{"toString":1}`}},
		{`{"additionalProperties":false}`, []string{`{}`, `[1]`}, []string{`{"a":1}`}},
		{`{"properties":{"a":{},"longer than eight":{}},"additionalProperties":{"type":"null"}}`, []string{`{"a":1,"x":null,"longer than eight":1}`}, []string{`{"x":1}`, `{"longer than EIGHT":1}`}},
		{`{"properties":{"a":{"required":["b"]}},"required":["a"]}`, []string{`{"a":{"b":1}}`, `{"a":1}`}, []string{`{"a":{}}`, `{"b":1}`}},
		{`{"properties":{"":{"type":"null"},"é":{"type":"null"}}}`, []string{`{"":null,"\u00e9":null}`}, []string{`{"":1}`, `{"\u00e9":1}`}},
		{`{"required":["x"],"additionalProperties":{"type":"integer"}}`, []string{`{"x":1}`}, []string{`{"x":"1"}`, `{}`}},

		// combinators
		{`{"allOf":[{"minimum":1},{"maximum":3}]}`, []string{`2`, `"x"`}, []string{`0`, `4`}},
		{`{"anyOf":[{"type":"string"},{"minimum":3}]}`, []string{`"x"`, `3`, `null`}, []string{`2`}},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, []string{`1`, `2.5`}, []string{`3`, `1.5`}},
		{`{"not":{"required":["a"]}}`, []string{`{}`}, []string{`{"a":1}`, `1`}},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"integer"}}}`, []string{`{"a":1}`, `{"b":1}`}, []string{`{"a":1,"b":1}`, `{"a":"x"}`, `{}`}},
		{`{"type":"object","anyOf":[{"properties":{"x":{"const":1}},"required":["x"]},{"properties":{"y":{"const":2}},"required":["y"]}],"additionalProperties":false}`,
			nil, []string{`{"x":1}`, `{"y":2}`, `{}`}},
		{`{"allOf":[{"oneOf":[{"type":"string"},{"type":"null"}]},{"not":{"const":""}}]}`, []string{`"a"`, `null`}, []string{`""`, `1`}},
		{`{"anyOf":[false,{"not":true},{"const":1}]}`, []string{`1`}, []string{`2`}},

		// references
		{`{"properties":{"next":{"$ref":"#"},"v":{"type":"integer"}},"additionalProperties":false}`, []string{`{}`, `{"next":{"next":{"v":1}}}`}, []string{`{"next":{"next":{"v":"x"}}}`, `{"next":{"w":1}}`}},
		{`{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"type":"null"}}}`, []string{`null`}, []string{`1`}},
		{`{"items":{"$ref":"#/definitions/a~1b%25"},"definitions":{"a/b%":{"type":"null"}}}`, []string{`[null]`}, []string{`[1]`}},
		{`{"definitions":{"t":{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#/definitions/t"}}]}},"$ref":"#/definitions/t"}`,
			[]string{`1`, `[]`, `[[1],[[2]],3]`}, []string{`"x"`, `[["x"]]`, `[1.5]`}},
	} {
		s := schematest.MustCompile(t, c.schema)
		for _, doc := range c.good {
			judge(t, s.Source(), s.Valid, doc, true)
			checkConsistent(t, s, []byte(doc))
		}
		for _, doc := range c.bad {
			judge(t, s.Source(), s.Valid, doc, false)
			checkConsistent(t, s, []byte(doc))
		}
	}
}

// judge checks a verdict, on the payload as it is and with white space at
// every place that allows it.
func judge(t *testing.T, source []byte, valid func([]byte) bool, doc string, want bool) {
	t.Helper()
	for _, text := range []string{doc, spaced(doc)} {
		if got := valid([]byte(text)); got != want {
			t.Errorf("%s on %q: %v", source, text, got)
		}
	}
}

// spaced adds white space around the punctuation outside of strings.
func spaced(doc string) string {
	var b strings.Builder
	quoted := false
	b.WriteString(" ")
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch {
		case quoted && c == '\\':
			b.WriteString(doc[i : i+2])
			i++
		case c == '"':
			quoted = !quoted
			b.WriteByte(c)
		case !quoted && strings.IndexByte("{}[]:,", c) >= 0:
			b.WriteString("\n\t" + string(c) + "\r ")
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + " "
}

// TestEveryPrefixIsMalformed cuts a payload at each byte: no prefix of an
// object is a value, whatever the schema.
func TestEveryPrefixIsMalformed(t *testing.T) {
	doc := `{"a":[1,-2.5e+3,"x\u00e9\ud83d\ude00",true,null,{"b":{}}],"kind":"neg","of":{"kind":"num","of":1},"add":[1,{"add":[1,2]}],"é":"日本"}`
	for _, src := range []string{`{}`, `{"properties":{"a":{"items":{}},"kind":{}},"required":["kind"]}`, expression, discriminated, `{"not":{}}`, `{"anyOf":[{"type":"null"},true]}`} {
		s := schematest.MustCompile(t, src)
		for i := range len(doc) {
			if s.Valid([]byte(doc[:i])) || s.Check([]byte(doc[:i])).Syntax == nil {
				t.Errorf("%s: the first %d bytes are not malformed", src, i)
			}
		}
		for _, tail := range []string{"x", "}", ",", "\x00", " 1"} {
			if s.Valid([]byte(doc+tail)) || s.Check([]byte(doc+tail)).Syntax == nil {
				t.Errorf("%s: %q after the value is not malformed", src, tail)
			}
		}
	}
}

// TestMalformedWhereItIsJudged puts a wrong byte in the place of each other, in
// payloads whose every part is judged and not read over.
func TestMalformedWhereItIsJudged(t *testing.T) {
	for src, doc := range map[string]string{
		`{"items":{"type":"integer"},"minItems":1}`:                                                                           ` [ 1 , 20 , 3 ] `,
		`{"items":{"items":{}},"uniqueItems":true}`:                                                                           `[[1],[2,3]]`,
		`{"properties":{"a":{"type":"string"},"b":{"type":"null"}},"additionalProperties":{"type":"boolean"}}`:                ` { "a" : "x" , "b":null,"c":true } `,
		`{"enum":[{"a":[1,"x"]}]}`:                                                                                            `{"a":[1,"x"]}`,
		`{"anyOf":[{"items":{"type":"string"}},{"items":{"type":"integer"}}]}`:                                                `[1,2]`,
		`{"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}`: `{"z":[1],"k":"b"}`,
		`{"pattern":"^a.c$","maxLength":9}`:                                                                                   `"a\u0062c"`,
		`{"type":"number","minimum":-9.5}`:                                                                                    `-1.5e0`,
	} {
		s := schematest.MustCompile(t, src)
		if !s.Valid([]byte(doc)) {
			t.Fatalf("%s does not accept %s", src, doc)
		}
		for i := range len(doc) {
			for _, by := range []string{"", " ", ",", ":", "[", "]", "{", "}", `"`, "0", "1", "-", ".", "e", "x", `\`, "\x00", "\xff"} {
				for _, changed := range []string{doc[:i] + by + doc[i+1:], doc[:i] + by + doc[i:], doc[:i] + by} {
					checkConsistent(t, s, []byte(changed))
					if got := s.Check([]byte(changed)).Verdict; !json.Valid([]byte(changed)) && got != schema.Malformed {
						t.Errorf("%s on %q: %v, want malformed", src, changed, got)
					}
				}
			}
		}
	}
}

// FuzzValidate judges arbitrary bytes by schemas that use every part of the
// engine: it must not panic, its two answers must agree, and white space must
// not matter.
func FuzzValidate(f *testing.F) {
	var schemas []*schema.Schema
	for _, src := range []string{
		`{}`, expression, discriminated, twins, negations, uniqueAllTheWay, enumAllTheWay,
		`{"type":"object","properties":{"id":{"type":"integer","minimum":1,"maximum":1e3},"tags":{"items":{"type":"string","minLength":1,"pattern":"^[a-zé]+$"},
			"uniqueItems":true,"maxItems":3},"when":{"format":"date-time"},"mail":{"format":"email"},"link":{"format":"uri"}},"required":["id"],"additionalProperties":false}`,
		`{"additionalProperties":{"anyOf":[{"enum":[1,"a",null,{"k":[1]}]},{"$ref":"#"}]}}`,
		`{"oneOf":[{"required":["a"]},{"required":["b"]},{"type":"array","items":{"const":1}}],"not":{"required":["c"]}}`,
	} {
		schemas = append(schemas, schematest.MustCompile(f, src))
	}
	for _, doc := range []string{
		`{"id":1,"tags":["a","b"],"when":"2026-01-01T00:00:00Z","mail":"a@b","link":"a:b"}`, `{"x":{"y":{"k":[1.0]}}}`, `[1,[1],[[]]]`,
		`{"of":{"of":1,"kind":"num"},"kind":"neg"}`, `{"add":[1,{"mul":[2,3]}]}`, `{"a":1,"a":2}`, `[1,1]`, "\"\xff\"", `{"k`, `1e400`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var compact bytes.Buffer
		tight := json.Compact(&compact, doc) == nil
		for _, s := range schemas {
			checkConsistent(t, s, doc)
			if tight && s.Valid(doc) != s.Valid(compact.Bytes()) {
				t.Fatalf("%s on %q: white space matters", s.Source(), doc)
			}
		}
	})
}
