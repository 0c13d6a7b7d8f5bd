package schema_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// faults compiles src, which must be refused.
func faults(t *testing.T, src string) []schema.Fault {
	t.Helper()
	_, err := schema.Compile([]byte(src))
	var refused *schema.CompileError
	if !errors.As(err, &refused) {
		t.Fatalf("Compile(%s) = %v, want a *CompileError", src, err)
	}
	return refused.Faults
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ src, pointer, message, hint string }{
		// the root and the text
		{`true`, "", "the root of a schema must be an object", "{}"},
		{`[]`, "", "the root of a schema must be an object", ""},
		{`null`, "", "the root of a schema must be an object", ""},
		{``, "", "unexpected end of input", "line 1, column 1"},
		{"{\n  \"type\": \"string\",\n}", "", "expected a member name", "line 3, column 1"},
		{`{"type":"string","type":"null"}`, "", "duplicate key", "line 1, column 18"},
		{`{} {}`, "", "unexpected data after the value", ""},
		// unknown keywords
		{`{"requried":[]}`, "/requried", `unsupported keyword "requried"`, `did you mean "required"?`},
		{`{"Type":"string"}`, "/Type", `unsupported keyword "Type"`, `did you mean "type"?`},
		{`{"additionalProprties":false}`, "/additionalProprties", "unsupported keyword", `did you mean "additionalProperties"?`},
		{`{"properties":{"a/b":{"~c":1}}}`, "/properties/a~1b/~0c", `unsupported keyword "~c"`, ""},
		{`{"nullable":true}`, "/nullable", "unsupported keyword", `["string", "null"]`},
		{`{"$id":"x"}`, "/$id", "unsupported keyword", "inside the document"},
		{`{"$defs":{}}`, "/$defs", "unsupported keyword", "definitions"},
		{`{"$comment":""}`, "/$comment", "unsupported keyword", "description"},
		{`{"if":{}}`, "/if", "unsupported keyword", "oneOf"},
		{`{"patternProperties":{}}`, "/patternProperties", "unsupported keyword", "additionalProperties"},
		{`{"multipleOf":2}`, "/multipleOf", "unsupported keyword", "integer"},
		{`{"dependencies":{}}`, "/dependencies", "unsupported keyword", "oneOf"},
		{`{"contains":{}}`, "/contains", "unsupported keyword", ""},
		{`{"x-internal":1}`, "/x-internal", "unsupported keyword", ""},
		{`{"":1}`, "/", `unsupported keyword ""`, ""},
		{`{"` + strings.Repeat("k", 5000) + `":1}`, "/" + strings.Repeat("k", 5000), "unsupported keyword \"kkk", ""},
		// values of keywords
		{`{"type":"strng"}`, "/type", `unknown type "strng"`, `did you mean "string"?`},
		{`{"type":"file"}`, "/type", `unknown type "file"`, "known are object, array"},
		{`{"type":1}`, "/type", "type must be a string or an array of strings, not a number", ""},
		{`{"type":[]}`, "/type", "must not be an empty array", "leave type out"},
		{`{"type":["string","any"]}`, "/type/1", `unknown type "any"`, ""},
		{`{"type":["string",null]}`, "/type/1", "must be a string, not null", ""},
		{`{"type":["null","null"]}`, "/type/1", "listed twice", ""},
		{`{"enum":[]}`, "/enum", "at least one value", "false"},
		{`{"enum":"a"}`, "/enum", "must be an array, not a string", ""},
		{`{"enum":[1,2,1.0]}`, "/enum/2", "the same value twice", "remove"},
		{`{"enum":[{"a":1,"b":[2]},{"b":[2e0],"a":1}]}`, "/enum/1", "the same value twice", ""},
		{`{"const":1e1000000000000000000}`, "/const", "more than 18 digits", ""},
		{`{"enum":[{"a":[1e-1000000000000000000]}]}`, "/enum/0/a/0", "more than 18 digits", ""},
		{`{"minimum":1e1000000000000000000}`, "/minimum", "more than 18 digits", ""},
		{`{"minimum":"5"}`, "/minimum", "minimum must be a number, not a string", ""},
		{`{"exclusiveMinimum":true}`, "/exclusiveMinimum", "must be a number, not a boolean", "draft-06"},
		{`{"minLength":-1}`, "/minLength", "must be an integer from 0 up", ""},
		{`{"maxLength":1.5}`, "/maxLength", "must be an integer from 0 up", ""},
		{`{"maxItems":"3"}`, "/maxItems", "must be a number, not a string", ""},
		{`{"uniqueItems":1}`, "/uniqueItems", "must be a boolean, not a number", ""},
		{`{"required":"a"}`, "/required", "required must be an array of names, not a string", ""},
		{`{"required":true}`, "/required", "required must be an array of names, not a boolean", "list the names"},
		{`{"required":["a",1]}`, "/required/1", "must be a string, not a number", ""},
		{`{"required":["a","a"]}`, "/required/1", `lists "a" twice`, ""},
		{`{"properties":[]}`, "/properties", "properties must be an object, not an array", ""},
		{`{"properties":{"a":1}}`, "/properties/a", "a schema must be an object or a boolean, not a number", ""},
		{`{"additionalProperties":"no"}`, "/additionalProperties", "a schema must be an object or a boolean", ""},
		{`{"items":[{}]}`, "/items", "tuple form", "one schema"},
		{`{"items":null}`, "/items", "a schema must be an object or a boolean, not null", ""},
		{`{"oneOf":{}}`, "/oneOf", "must be an array of schemas, not an object", ""},
		{`{"anyOf":[]}`, "/anyOf", "must hold at least one schema", ""},
		{`{"allOf":[{},3]}`, "/allOf/1", "a schema must be an object or a boolean", ""},
		{`{"not":[]}`, "/not", "a schema must be an object or a boolean", ""},
		{`{"format":"uid"}`, "/format", `unknown format "uid"`, `did you mean "uuid"?`},
		{`{"format":"ipv4"}`, "/format", `unknown format "ipv4"`, "known are uuid, email"},
		{`{"format":{}}`, "/format", "must be a string, not an object", ""},
		{`{"pattern":"(?=a)"}`, "/pattern", "lookahead at byte 0", "allOf"},
		{`{"pattern":"["}`, "/pattern", "not closed", ""},
		{`{"pattern":7}`, "/pattern", "must be a string", ""},
		{`{"title":1}`, "/title", "must be a string", ""},
		{`{"description":[]}`, "/description", "must be a string", ""},
		{`{"examples":{}}`, "/examples", "examples must be an array, not an object", ""},
		{`{"definitions":[]}`, "/definitions", "definitions must be an object", ""},
		{`{"definitions":{"a":{"typ":1}}}`, "/definitions/a/typ", "unsupported keyword", `did you mean "type"?`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "/$schema", "another dialect", "draft-07"},
		{`{"items":{"$schema":"http://json-schema.org/draft-07/schema#"}}`, "/items/$schema", "only at the root", ""},
		// references
		{`{"$ref":7}`, "/$ref", "must be a string", ""},
		{`{"$ref":"#/definitions/a"}`, "/$ref", `names the definition "a", which does not exist`, ""},
		{`{"$ref":"#/definitions/adress","definitions":{"address":{}}}`, "/$ref", "does not exist", `did you mean "address"?`},
		{`{"items":{"$ref":"other.json"}}`, "/items/$ref", "$ref must be #/definitions/<name>", "nothing outside"},
		{`{"items":{"$ref":"http://127.0.0.1:1/x"}}`, "/items/$ref", "$ref must be #/definitions/<name>", ""},
		{`{"items":{"$ref":"file:///etc/passwd"}}`, "/items/$ref", "$ref must be #/definitions/<name>", ""},
		{`{"items":{"$ref":"#/properties/a"},"properties":{"a":{}}}`, "/items/$ref", "$ref must be #/definitions/<name>", ""},
		{`{"items":{"$ref":"#/definitions/a/items"},"definitions":{"a":{"items":{}}}}`, "/items/$ref", "$ref must be", ""},
		{`{"items":{"$ref":"#/definitions/a~2"},"definitions":{"a~2":{}}}`, "/items/$ref", "$ref must be", ""},
		{`{"items":{"$ref":"#/definitions/%zz"}}`, "/items/$ref", "$ref must be", ""},
		{`{"items":{"$ref":"#a"}}`, "/items/$ref", "$ref must be", ""},
		{`{"items":{"definitions":{"a":{}}},"not":{"$ref":"#/definitions/a"}}`, "/not/$ref", "does not exist", ""},
		{`{"items":{"$ref":"#","maxItems":2}}`, "/items/maxItems", "ignores maxItems beside $ref", "allOf"},
		{`{"items":{"$ref":"#","definitions":{}}}`, "/items/definitions", "ignores definitions beside $ref", ""},
		{`{"$ref":"#"}`, "/$ref", "leads back to itself", "property or an element"},
		{`{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}`,
			"/definitions/b/$ref", "leads back to itself", ""},
		{`{"definitions":{"a":{"anyOf":[{"type":"null"},{"allOf":[{"not":{"$ref":"#/definitions/a"}}]}]}}}`,
			"/definitions/a/anyOf/1/allOf/0/not/$ref", "leads back to itself", ""},
	} {
		got := faults(t, c.src)
		if len(got) != 1 {
			t.Errorf("Compile(%.200s): %d faults %v, want 1", c.src, len(got), got)
			continue
		}
		f := got[0]
		if f.Pointer != c.pointer || !strings.Contains(f.Message, c.message) || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("Compile(%.200s):\n got %q %q %q\nwant %q %q %q", c.src, f.Pointer, f.Message, f.Hint, c.pointer, c.message, c.hint)
		}
		if len(f.Message) > 300 {
			t.Errorf("Compile(%.200s): a message of %d bytes", c.src, len(f.Message))
		}
	}
}

func TestCompileReportsEveryFault(t *testing.T) {
	got := faults(t, `{
		"type": "objekt",
		"properties": {"a": {"minimun": 1, "pattern": "(?!x)"}, "b": {"$ref": "#/definitions/missing", "minLength": 1}},
		"required": ["a", "a"],
		"definitions": {"unused": {"format": "date"}}
	}`)
	var pointers []string
	for _, f := range got {
		pointers = append(pointers, f.Pointer)
	}
	want := []string{
		"/type", "/properties/a/minimun", "/properties/a/pattern", "/properties/b/minLength",
		"/required/1", "/definitions/unused/format", "/properties/b/$ref",
	}
	if fmt.Sprint(pointers) != fmt.Sprint(want) {
		t.Errorf("faults at\n%v, want\n%v", pointers, want)
	}
	text := (&schema.CompileError{Faults: got[:2]}).Error()
	if want := "invalid schema: at /type: unknown type \"objekt\" (did you mean \"object\"?)\n" +
		"at /properties/a/minimun: unsupported keyword \"minimun\" (did you mean \"minimum\"?)"; text != want {
		t.Errorf("Error() =\n%s, want\n%s", text, want)
	}
}

func TestCompileAccepts(t *testing.T) {
	for _, src := range []string{
		`{}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","title":"t","description":"d","default":{"any":1},"examples":[1,"x"]}`,
		`{"properties":{"a":true,"b":false},"items":false,"not":true,"oneOf":[true],"additionalProperties":true}`,
		`{"properties":{"a":{"$ref":"#","title":"t","description":"d","default":1,"examples":[]}}}`,
		`{"definitions":{"a/b~c%":{},"unused":{}},"items":{"$ref":"#/definitions/a~1b~0c%25"}}`,
		`{"definitions":{"":{}},"items":{"$ref":"#/definitions/"}}`,
		`{"items":{"definitions":{"inner":{"type":"string"}}}}`,
		`{"minLength":2.0,"maxLength":3e2,"minItems":0,"maxItems":1e400,"required":[],"enum":[1,"1",true,null,[1],{"a":1}]}`,
		`{"$ref":"#/definitions/node","definitions":{"node":{"properties":{"next":{"$ref":"#/definitions/node"}}}}}`,
		`{"properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`,
	} {
		if _, err := schema.Compile([]byte(src)); err != nil {
			t.Errorf("Compile(%s): %v", src, err)
		}
	}
}

func TestSourceIsACopy(t *testing.T) {
	src := []byte(`{"type":"string"}`)
	s, err := schema.Compile(src)
	if err != nil {
		t.Fatal(err)
	}
	src[9] = 'X'
	s.Source()[9] = 'Y'
	if got := string(s.Source()); got != `{"type":"string"}` {
		t.Errorf("Source() = %s", got)
	}
	if !s.Valid([]byte(`"x"`)) || s.Valid([]byte(`1`)) {
		t.Error("the schema changed with its source")
	}
}

// TestCompileHostileSchemas compiles schemas that a peer could publish.
func TestCompileHostileSchemas(t *testing.T) {
	refs := schematest.Object(20_000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/definitions/d%d"}`, i, i+1) })
	for name, src := range map[string]string{
		"a long chain of references": `{"$ref":"#/definitions/d0","definitions":` + refs[:len(refs)-1] + `,"d20000":{"type":"null"}}}`,
		"many properties":            `{"properties":` + schematest.Object(40_000, func(i int) string { return fmt.Sprintf(`"property%d":{}`, i) }) + `}`,
		"deep nesting":               strings.Repeat(`{"items":`, 250) + `{}` + strings.Repeat(`}`, 250),
		"many branches":              `{"anyOf":` + schematest.List(20_000, func(i int) string { return fmt.Sprintf(`{"const":%d}`, i) }) + `}`,
		"many patterns":              `{"allOf":` + schematest.List(2000, func(i int) string { return fmt.Sprintf(`{"pattern":"^[a-z]{1,%d}x?$"}`, i%60+1) }) + `}`,
		"a large pattern":            `{"pattern":"^(?:[a-z]{1,100}\\.){0,9}$"}`,
	} {
		if _, err := schema.Compile([]byte(src)); err != nil {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	for name, src := range map[string]string{
		"combinators in a long chain":      nesting(20_000),
		"too large":                        `{"title":"` + strings.Repeat("x", 9<<20) + `"}`,
		"nested too deeply":                strings.Repeat(`{"items":`, 100_000) + `{}` + strings.Repeat(`}`, 100_000),
		"a long loop":                      `{"definitions":` + strings.Replace(refs, "d20000", "d0", 1) + `}`,
		"patterns that are large together": `{"pattern":"` + strings.Repeat(`[a-z]{1000}`, 500) + `"}`,
		"classes that are large together":  `{"pattern":"` + strings.Repeat(`\\p{L}`, 10_000) + `"}`,
		"a pattern out of bounds":          `{"pattern":"((a{100}){100}){100}"}`,
	} {
		if _, err := schema.Compile([]byte(src)); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}

// TestCompileDeepLiterals bounds the memory for literals with many parts that
// nest deep, of which each has a long pointer.
func TestCompileDeepLiterals(t *testing.T) {
	src := []byte(`{"enum":` + schematest.List(400, func(i int) string { return string(nested(230, fmt.Sprint(i))) }) + `}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := schema.Compile(src); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if ratio := (after.TotalAlloc - before.TotalAlloc) / uint64(len(src)); ratio > 250 {
		t.Errorf("%d bytes allocated for each byte of source", ratio)
	}
	got := faults(t, `{"enum":[{"a":[1,1e9999999999999999999]},1e9999999999999999999]}`)
	if len(got) != 2 || got[0].Pointer != "/enum/0/a/1" || got[1].Pointer != "/enum/1" {
		t.Errorf("inexact numbers: %v", got)
	}
}

// nesting returns a schema whose combinators stand n deep around one value, by
// way of definitions.
func nesting(n int) string {
	chain := schematest.Object(n, func(i int) string {
		return fmt.Sprintf(`"d%d":{"anyOf":[{"type":"null"},{"$ref":"#/definitions/d%d"}]}`, i, i+1)
	})
	return `{"items":{"$ref":"#/definitions/d0"},"definitions":` + chain[:len(chain)-1] + fmt.Sprintf(`,"d%d":{"type":"array","items":{"$ref":"#"}}}}`, n)
}

func TestNestingIsBounded(t *testing.T) {
	s := schematest.MustCompile(t, nesting(128)).WithLimits(schema.Limits{MaxDepth: 1 << 30})
	for depth, want := range map[int]bool{4096: true, 4097: false} {
		if got := s.Valid(nested(depth, "")); got != want {
			t.Errorf("a payload of depth %d: %v", depth, got)
		}
	}
	got := faults(t, nesting(129))
	if len(got) != 1 || !strings.Contains(got[0].Message, "nest more than 128 deep") || got[0].Pointer != "/definitions/d0" {
		t.Errorf("one level more: %v", got)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`{"type":["string","null"],"enum":["a",null],"minLength":1}`, expression, discriminated, twins, negations,
		`{"properties":{"a":{"$ref":"#"}},"required":["a"],"additionalProperties":false}`, `{"$ref":"#"}`, `{"pattern":"^\\d+$"}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":{"a":[1,"x",null]}}`))
	}
	f.Fuzz(func(t *testing.T, src, doc []byte) {
		s, err := schema.Compile(src)
		if err != nil {
			var refused *schema.CompileError
			if !errors.As(err, &refused) || len(refused.Faults) == 0 {
				t.Fatalf("Compile(%q) = %v", src, err)
			}
			return
		}
		checkConsistent(t, s, doc)
	})
}

// checkConsistent holds the two ways to judge a payload against each other.
func checkConsistent(t *testing.T, s *schema.Schema, doc []byte) {
	t.Helper()
	report := s.Check(doc)
	if s.Valid(doc) != (report.Verdict == schema.Valid) {
		t.Fatalf("%s on %q: Valid = %v, Check = %v", s.Source(), doc, s.Valid(doc), report)
	}
	if report.Verdict == schema.Invalid != (len(report.Violations) > 0) {
		t.Fatalf("%s on %q: %v with violations %v", s.Source(), doc, report.Verdict, report.Violations)
	}
	if report.Verdict == schema.Malformed != (report.Syntax != nil) {
		t.Fatalf("%s on %q: %v with syntax error %v", s.Source(), doc, report.Verdict, report.Syntax)
	}
}
