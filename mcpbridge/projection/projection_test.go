package projection_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/mcpbridge/projection"
	"github.com/agentd/agentd/schema"
)

func named(t testing.TB, name string) projection.Projection {
	t.Helper()
	p, err := projection.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func project(t testing.TB, name, src string) *projection.Projected {
	t.Helper()
	p, err := named(t, name).Project(json.RawMessage(src))
	if err != nil {
		t.Fatalf("%s of %s: %v", name, src, err)
	}
	return p
}

func args(properties string) string {
	return `{"type":"object","properties":{` + properties + `},"required":["v"],"additionalProperties":false}`
}

// What each provider gets of one value, and what is reported.
func TestProviders(t *testing.T) {
	const (
		openAI    = "openai-strict"
		anthropic = "anthropic"
		gemini    = "gemini"
	)
	for _, c := range []struct{ name, provider, value, want, dropped string }{
		{"bounds of numbers", openAI, `{"type":"integer","minimum":1,"exclusiveMaximum":9007199254740993}`, `{"type":"integer","minimum":1,"exclusiveMaximum":9007199254740993}`, ""},
		{"bounds of numbers", anthropic, `{"type":"integer","minimum":1,"exclusiveMaximum":9007199254740993}`, `{"type":"integer","description":"At least 1. Less than 9007199254740993."}`, "/properties/v minimum: said in the description\n/properties/v exclusiveMaximum: said in the description"},
		{"bounds of numbers", gemini, `{"type":"integer","minimum":1,"exclusiveMaximum":9}`, `{"type":"integer","minimum":1,"description":"Less than 9."}`, "/properties/v exclusiveMaximum: said in the description"},
		{"lengths", openAI, `{"type":"string","description":"A name","minLength":1,"maxLength":9}`, `{"type":"string","description":"A name. At least 1 characters. At most 9 characters."}`, "/properties/v minLength: said in the description\n/properties/v maxLength: said in the description"},
		{"a format", anthropic, `{"type":"string","format":"uri"}`, `{"type":"string","format":"uri"}`, ""},
		{"a format", openAI, `{"type":"string","format":"uri"}`, `{"type":"string","description":"Format: uri."}`, "/properties/v format: said in the description"},
		{"a noted format", anthropic, `{"type":"string","format":"date","minimum":1}`, `{"type":"string","format":"date"}`, "/properties/v format: the provider may enforce it, and the schema only notes it (narrows)"},
		{"a pattern", openAI, `{"type":"string","pattern":"^a+$"}`, `{"type":"string","pattern":"^a+$"}`, ""},
		{"a pattern", gemini, `{"type":"string","pattern":"^a+$"}`, `{"type":"string","description":"Matches the regular expression ^a+$"}`, "/properties/v pattern: said in the description"},
		{"a boundary", openAI, `{"type":"string","pattern":"a\\b"}`, `{"type":"string","description":"Matches the regular expression a\\b"}`, "/properties/v pattern: said in the description"},
		{"counts", anthropic, `{"type":"array","items":{"type":"string"},"minItems":3,"maxItems":4}`, `{"type":"array","minItems":1,"description":"At least 3 items. At most 4 items.","items":{"type":"string"}}`, "/properties/v minItems: said in the description\n/properties/v maxItems: said in the description"},
		{"a constant", gemini, `{"const":"a"}`, `{"type":"string","enum":["a"]}`, ""},
		{"lists that meet", openAI, `{"enum":["a","b"],"allOf":[{"enum":["b","c"]}]}`, `{"type":"string","enum":["a","b"]}`, "/properties/v/allOf/0 enum: only one list of values is sent"},
		{"a constant of a list", openAI, `{"enum":["a","b"],"allOf":[{"const":"b"}]}`, `{"type":"string","enum":["b"]}`, "/properties/v enum: only one list of values is sent"},
		{"a list with null", openAI, `{"enum":["a",null]}`, `{"type":["string","null"],"enum":["a",null]}`, ""},
		{"a list with null", gemini, `{"enum":["a",null]}`, `{"type":["string","null"],"description":"One of: \"a\", null."}`, "/properties/v enum: a list with booleans or null is not taken: said in the description"},
		{"oneOf", gemini, `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, "/properties/v oneOf: sent as anyOf: that only one fits is not said"},
		{"anything", openAI, `{}`, `{"type":"string","description":"The JSON text of a value."}`, "/properties/v type: any type is valid: sent as a string with the JSON text of the value"},
		{"a map", anthropic, `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"string","description":"The JSON text of a value that fits the JSON Schema {\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}."}`, "/properties/v additionalProperties: the caller chooses the names of the members: sent as a string with the JSON text of the value"},
		{"a map", gemini, `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`, ""},
		{"an optional member", openAI, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`, ""},
		{"an optional list", openAI, `{"type":"object","properties":{"a":{"enum":["x"],"description":"One."}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"description":"One.","anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`, ""},
		{"an optional member that may be null", openAI, `{"type":"object","properties":{"a":{"type":["string","null"]}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`, "/properties/v/properties/a required: null stands for the absent member, and null itself cannot be written (narrows)"},
		{"an optional member", anthropic, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, ""},
		{"an open object", anthropic, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, "/properties/v additionalProperties: members that the schema does not declare cannot be written (narrows)"},
		{"an open object", gemini, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		{"names", anthropic, `{"type":"object","properties":{"$top":{"type":"string"}},"required":["$top"],"additionalProperties":false}`, `{"type":"object","properties":{"_top_81bf98e4":{"type":"string"}},"required":["_top_81bf98e4"],"additionalProperties":false}`, `/properties/v properties: the member "$top" is sent as "_top_81bf98e4"`},
		{"allOf", openAI, `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`, "/properties/v additionalProperties: members that the schema does not declare cannot be written (narrows)"},
		{"not", gemini, `{"type":"string","not":{"const":"x"}}`, `{"type":"string","description":"By JSON Schema also: {\"not\": {\"const\":\"x\"}}."}`, "/properties/v not: said in the description"},
		{"a tuple", openAI, `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`, `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}`, "/properties/v prefixItems: sent as elements that fit the schema of any position"},
		{"refined", gemini, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","description":"By JSON Schema also: {\"anyOf\": [{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}.","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "/properties/v anyOf: said in the description"},
		{"kinds", anthropic, `{"type":["string","array"],"items":{"type":"integer"}}`, `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}}]}`, ""},
		{"text or a string", openAI, `{"anyOf":[{"type":"string"},{"type":"object"}]}`, `{"type":"string","description":"The JSON text of a value that fits the JSON Schema {\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}."}`, "/properties/v/anyOf/1 additionalProperties: the caller chooses the names of the members: sent as a string with the JSON text of the value\n/properties/v anyOf: one branch is sent as JSON text, and another may be a string: sent as a string with the JSON text of the value"},
		{"types that meet", gemini, `{"type":"integer","allOf":[{"type":"number","minimum":1}]}`, `{"type":"integer","minimum":1}`, ""},
		{"a default", openAI, `{"type":"integer","default":10}`, `{"type":"integer","description":"Default: 10."}`, "/properties/v default: said in the description"},
	} {
		t.Run(c.name+" for "+c.provider, func(t *testing.T) {
			p := project(t, c.provider, args(`"v":`+c.value))
			if want := args(`"v":` + c.want); string(p.Schema) != want {
				t.Errorf("got  %s\nwant %s", p.Schema, want)
			}
			if got := report(p); got != c.dropped {
				t.Errorf("dropped\n%s\nwant\n%s", got, c.dropped)
			}
		})
	}
}

func report(p *projection.Projected) string {
	var all []string
	for _, d := range p.Dropped {
		line := d.String()
		if d.Narrows {
			line += " (narrows)"
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

const tree = `{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"required":["root"],"additionalProperties":false,
	"$defs":{"node":{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/node"}},"required":["n"],"additionalProperties":false}}}`

// A schema that contains itself is a definition where the provider takes it, and text
// elsewhere. Nothing of it is lost.
func TestRecursion(t *testing.T) {
	const value = `{"root":{"n":1,"next":{"n":9007199254740993,"next":{"n":3}}}}`
	for _, c := range []struct{ provider, written string }{
		{"openai-strict", `{"root":{"n":1,"next":{"n":9007199254740993,"next":{"n":3,"next":null}}}}`},
		{"anthropic", `{"root":{"n":1,"next":"{\"n\":9007199254740993,\"next\":{\"n\":3}}"}}`},
		{"gemini", `{"root":{"n":1,"next":"{\"n\":9007199254740993,\"next\":{\"n\":3}}"}}`},
	} {
		p := project(t, c.provider, tree)
		if !compile(t, p.Schema).Valid([]byte(c.written)) {
			t.Errorf("%s refuses %s by %s", c.provider, c.written, p.Schema)
		}
		if got := p.Restore(json.RawMessage(c.written)); string(got) != value {
			t.Errorf("%s restores %s", c.provider, got)
		}
		if !strings.Contains(report(p), "the schema contains itself") {
			t.Errorf("%s reports %q", c.provider, report(p))
		}
		if refs := strings.Contains(string(p.Schema), "$ref"); refs != (c.provider == "openai-strict") {
			t.Errorf("%s: %s", c.provider, p.Schema)
		}
	}
}

func compile(t testing.TB, src json.RawMessage) *schema.Schema {
	t.Helper()
	s, err := schema.CompileWith(src, schema.CompileOptions{Profile: schema.ProfileFull, AssertFormats: true})
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return s
}

// Schemas that cannot stand at the root are the one member of an object that can.
func TestRoots(t *testing.T) {
	for _, c := range []struct{ name, src, written, want string }{
		{"a union", `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}`, `{"arguments":{"b":"x"}}`, `{"b":"x"}`},
		{"a map", `{"type":"object"}`, `{"arguments":"{\"a\":[1]}"}`, `{"a":[1]}`},
		{"no members", `{"type":"object","properties":{}}`, `{}`, `{}`},
		{"arguments that are called so", `{"type":"object","properties":{"arguments":{"type":"string"}}}`, `{"arguments":"x"}`, `{"arguments":"x"}`},
		{"unwrapped all the same", `{"type":"object"}`, `{"a":1}`, `{"a":1}`},
		{"a reference", `{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{"type":"string"}}}}}`, `{"a":null}`, `{}`},
	} {
		p := project(t, "openai-strict", c.src)
		if got := p.Restore(json.RawMessage(c.written)); string(got) != c.want {
			t.Errorf("%s: %s means %s, want %s (%s)", c.name, c.written, got, c.want, p.Schema)
		}
		var root struct{ Type string }
		if err := json.Unmarshal(p.Schema, &root); err != nil || root.Type != "object" {
			t.Errorf("%s: the root is %s (%v)", c.name, p.Schema, err)
		}
	}
}

// Arguments keep their numbers, and what does not fit is left for the schema to judge.
func TestRestore(t *testing.T) {
	const src = `{"type":"object","properties":{
		"id":{"type":"integer"}, "note":{"type":"string"}, "tags":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}}},
		"data":{"type":"object"}, "any":{}, "one":{"anyOf":[{"type":"string"},{"type":"object","properties":{"x":{"type":"number"}}}]}}}`
	p := project(t, "openai-strict", src)
	for _, c := range []struct{ written, want string }{
		{`{"id":9007199254740993,"note":null,"tags":null,"data":null,"any":null,"one":null}`, `{"id":9007199254740993}`},
		{` { "id" : 1.0 , "tags" : [ {"k":null} , {"k":"v"} ] } `, `{"id":1.0,"tags":[{},{"k":"v"}]}`},
		{`{"data":"{\"n\":12345678901234567890.10}","any":"[1, null]"}`, `{"data":{"n":12345678901234567890.10},"any":[1, null]}`},
		{`{"any":"null"}`, `{"any":null}`},
		{`{"any":"plain words"}`, `{"any":"plain words"}`},
		{`{"data":{"already":"parsed"}}`, `{"data":{"already":"parsed"}}`},
		{`{"data":"{\"a\":1,\"a\":2}"}`, `{"data":"{\"a\":1,\"a\":2}"}`},
		{`{"one":{"x":null}}`, `{"one":{}}`},
		{`{"one":"x"}`, `{"one":"x"}`},
		{`{"tags":"none","undeclared":null}`, `{"tags":"none","undeclared":null}`},
		{`[1]`, `[1]`},
		{`{"id":`, `{"id":`},
		{``, ``},
		{`{"note":null,"note":"x"}`, `{"note":null,"note":"x"}`},
	} {
		if got := p.Restore(json.RawMessage(c.written)); string(got) != c.want {
			t.Errorf("%s means %s, want %s", c.written, got, c.want)
		}
	}
}

// No schema becomes larger than the provider takes.
func TestSizes(t *testing.T) {
	list := func(n int, f func(int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = f(i)
		}
		return strings.Join(all, ",")
	}
	deep := `{"type":"string"}`
	for range 12 {
		deep = `{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`
	}
	doubling := ""
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/d%d"},"r":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	for _, c := range []struct{ name, src, reason string }{
		{"properties", `{"type":"object","properties":{` + list(5001, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}`, "too many properties"},
		{"values", args(`"v":{"enum":[` + list(1001, func(i int) string { return fmt.Sprint(i) }) + `]}`), "too many values"},
		{"long values", args(`"v":{"enum":[` + list(251, func(i int) string { return fmt.Sprintf(`"%060d"`, i) }) + `]}`), "too many values"},
		{"depth", deep, "more than 10 deep"},
		{"references", `{"type":"object","properties":{"v":{"$ref":"#/$defs/d0"}},"$defs":{` + doubling + `"d40":{"type":"string"}}}`, "deep"},
	} {
		p := project(t, "openai-strict", c.src)
		if !strings.Contains(report(p), c.reason) {
			t.Errorf("%s: %.300s", c.name, report(p))
		}
		if len(p.Schema) > 1<<20 {
			t.Errorf("%s: %d bytes", c.name, len(p.Schema))
		}
	}
	// Elsewhere references multiply until the bound of the whole.
	p := project(t, "gemini", `{"type":"object","properties":{"v":{"$ref":"#/$defs/d0"}},"$defs":{`+doubling+`"d40":{"type":"string"}}}`)
	if len(p.Schema) > 4<<20 || !strings.Contains(report(p), "too many properties") {
		t.Errorf("%d bytes, %.300s", len(p.Schema), report(p))
	}
	many := `{"type":"object","properties":{` + list(30, func(i int) string { return fmt.Sprintf(`"p%d":{"type":["string","null"]}`, i) }) + `},"additionalProperties":false}`
	for _, want := range []string{"30 members are optional", "there are 30 unions"} {
		if got := report(project(t, "anthropic", many)); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNames(t *testing.T) {
	if got := projection.Names(); !slices.Equal(got, []string{"openai-strict", "anthropic", "gemini"}) {
		t.Errorf("names %q", got)
	}
	if _, err := projection.Named("open-ai"); err == nil || !strings.Contains(err.Error(), "openai-strict, anthropic, gemini") {
		t.Errorf("got %v", err)
	}
	if _, err := projection.Named("anthropc"); err == nil || !strings.Contains(err.Error(), `did you mean "anthropic"?`) {
		t.Errorf("got %v", err)
	}
	p := named(t, "gemini")
	for name, ok := range map[string]bool{"desk__find": true, "_x-1": true, "": false, "1x": false, "a.b": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if err := p.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := named(t, "openai-strict").CheckName("1x"); err != nil {
		t.Error(err)
	}
	if _, err := p.Project(json.RawMessage(`{"type":"objekt"}`)); err == nil {
		t.Error("a schema that is none was projected")
	}
}

func ExampleNamed() {
	p, err := projection.Named("openai-strict")
	if err != nil {
		fmt.Println(err)
		return
	}
	projected, err := p.Project(json.RawMessage(`{
		"type": "object",
		"properties": {"title": {"type": "string", "maxLength": 80}, "year": {"type": "integer"}},
		"required": ["title"],
		"additionalProperties": false
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(projected.Schema))
	for _, d := range projected.Dropped {
		fmt.Println(d)
	}
	// What the model writes, and what it means.
	fmt.Println(string(projected.Restore(json.RawMessage(`{"title": "Dune", "year": null}`))))
	// Output:
	// {"type":"object","properties":{"title":{"type":"string","description":"At most 80 characters."},"year":{"type":["integer","null"]}},"required":["title","year"],"additionalProperties":false}
	// /properties/title maxLength: said in the description
	// {"title":"Dune"}
}
