package model_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/modeltest"
)

// show writes a type in a short notation: {a: string, b?: integer, ...any} is
// an object, [string] an array, <string, null> one of two elements, and an intersection stands before an = and what
// it comes to.
func show(t *model.Type) string {
	switch t.Kind {
	case model.Any:
		return "any"
	case model.Never:
		return "never"
	case model.Null:
		return "null"
	case model.Boolean:
		return "boolean"
	case model.Integer:
		if t.Big {
			return "bigint"
		}
		return "integer"
	case model.Number:
		return "number"
	case model.String:
		return "string"
	case model.Enum:
		return map[model.Kind]string{model.String: "S", model.Integer: "I", model.Number: "N", model.Boolean: "B"}[t.Base] +
			"(" + strings.Join(t.Values, " ") + ")"
	case model.Array:
		if t.Tuple != nil {
			var elems []string
			for _, e := range t.Tuple {
				elems = append(elems, show(e))
			}
			return "<" + strings.Join(elems, ", ") + ">"
		}
		return "[" + show(t.Elem) + "]"
	case model.Ref:
		return t.Named.Name
	}
	var parts []string
	for _, p := range t.Of {
		parts = append(parts, show(p))
	}
	switch t.Kind {
	case model.Union:
		return "(" + strings.Join(parts, " | ") + ")"
	case model.Intersection:
		return "(" + strings.Join(parts, " & ") + " = " + show(t.Flat) + ")"
	}
	for _, m := range t.Members {
		mark := ": "
		if !m.Required {
			mark = "?: "
		}
		parts = append(parts, m.Name+mark+show(m.Type))
	}
	if t.Elem != nil {
		parts = append(parts, "..."+show(t.Elem))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// request is the type of a request with a schema.
func request(t *testing.T, schema string) *model.Named {
	t.Helper()
	return modeltest.API(t, schema).Capabilities[0].Request
}

func TestTypes(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"no assertion", `{}`, "any"},
		{"every type", `{"type":["null","boolean","number","string","array","object"]}`, "any"},
		{"all but one type", `{"type":["null","boolean","number","string","array"]}`, "(null | boolean | number | string | [any])"},
		{"integer within number", `{"type":["integer","number"]}`, "number"},
		{"bounds within 64 bits", `{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}`, "integer"},
		{"a minimum beyond", `{"type":"integer","minimum":-9223372036854775809}`, "bigint"},
		{"a maximum beyond", `{"type":"integer","maximum":9223372036854775808}`, "bigint"},
		{"an exclusive one", `{"type":"integer","exclusiveMaximum":1e19}`, "bigint"},
		{"bounds of a number", `{"type":"number","maximum":1e30}`, "number"},

		{"enum of one kind", `{"enum":["a","b"]}`, "S(a b)"},
		{"enum of numbers", `{"enum":[1,2.5]}`, "N(1 2.5)"},
		{"integers however written", `{"enum":[1.0,2e1]}`, "I(1 20)"},
		{"integers that 64 bits do not hold", `{"enum":[1,1e30]}`, "bigint"},
		{"both booleans", `{"enum":[true,false]}`, "boolean"},
		{"null among others", `{"enum":[null,"a"]}`, "(null | S(a))"},
		{"values of the wrong type", `{"type":"string","enum":["a",1,null]}`, "S(a)"},
		{"const array", `{"const":[1,"a",[]]}`, "<I(1), S(a), <>>"},
		{"const object", `{"const":{"a":null,"b":{"c":true}}}`, "{a: null, b: {c: B(true)}}"},

		{"items", `{"type":"array","items":{"type":"null"}}`, "[null]"},
		{"items beside other types", `{"type":["array","string"],"items":{"type":"null"}}`, "([null] | string)"},
		{"items without a type", `{"items":{"type":"null"}}`, "({...any} | [null] | string | number | boolean | null)"},
		{"members", `{"type":"object","properties":{"b":{"type":"null"},"a":{}},"required":["a"]}`, "{b?: null, a: any, ...any}"},
		{"a required member without a schema", `{"type":"object","required":["a"],"additionalProperties":{"type":"string"}}`, "{a: string, ...string}"},
		{"a required member that cannot be", `{"type":"object","required":["a"],"additionalProperties":false}`, "never"},
		{"a required member of no type", `{"type":"object","properties":{"a":false},"required":["a"]}`, "never"},
		{"others of no type", `{"type":"object","additionalProperties":{"enum":[1],"type":"string"}}`, "{}"},

		{"union", `{"anyOf":[{"type":"string"},{"type":"null"},{"type":"string"}]}`, "(string | null)"},
		{"union of unions", `{"oneOf":[{"type":["string","null"]},{"type":["integer","null"]}]}`, "(string | null | integer)"},
		{"union with anything", `{"oneOf":[{"type":"string"},{}]}`, "any"},
		{"union with nothing", `{"oneOf":[{"type":"string"},false]}`, "string"},
		{"values that a type covers", `{"anyOf":[{"enum":["a"]},{"type":"string"},{"enum":[1]},{"type":"number"}]}`, "(string | number)"},
		{"enums join", `{"anyOf":[{"enum":["a","b"]},{"enum":["b","c"]},{"const":1},{"const":2.5}]}`, "(S(a b c) | N(1 2.5))"},

		{"intersection of scalars", `{"allOf":[{"type":["string","integer"]},{"type":["integer","null"]}]}`, "integer"},
		{"intersection with a type", `{"type":"string","anyOf":[{"type":"string"},{"type":"null"}]}`, "string"},
		{"enums intersect", `{"allOf":[{"enum":["a","b"]},{"enum":["b","c"]}]}`, "S(b)"},
		{"enums of both kinds of number", `{"allOf":[{"enum":[1,2.5]},{"enum":[1,2]}]}`, "I(1)"},
		{"nothing in common", `{"allOf":[{"enum":["a"]},{"enum":["b"]}]}`, "never"},
		{"a string and a number of the same text", `{"allOf":[{"$ref":"#/definitions/s"},{"enum":[1]}],"definitions":{"s":{"enum":["1"]}}}`, "never"},
		{"definitions with nothing in common", `{"allOf":[{"$ref":"#/definitions/i"},{"$ref":"#/definitions/s"}],
			"definitions":{"i":{"type":"integer"},"s":{"type":"string"}}}`, "never"},
		{"definitions that overlap", `{"allOf":[{"$ref":"#/definitions/n"},{"$ref":"#/definitions/i"}],
			"definitions":{"i":{"type":"integer"},"n":{"type":"number"}}}`, "(integer & XRequestN & XRequestI = integer)"},
		{"a part that turns out to be nothing", `{"anyOf":[{"allOf":[{"type":"object","required":["a"]},{"type":"object","additionalProperties":false}]},
			{"type":"string"}]}`, "string"},
		{"parts that all do", `{"anyOf":[{"allOf":[{"type":"object","required":["a"]},{"type":"object","additionalProperties":false}]},
			{"allOf":[{"type":"object","required":["b"]},{"type":"object","additionalProperties":false}]}]}`, "never"},
		{"objects intersect", `{"allOf":[{"type":"object","properties":{"a":{"type":["string","null"]}}},
			{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"],"additionalProperties":false}]}`,
			"({a?: (string | null), ...any} & {a: string, b?: any} = {a: string, b?: any})"},
		{"arrays intersect", `{"allOf":[{"type":"array","items":{"type":["string","null"]}},{"type":"array","items":{"type":"string"}}]}`,
			"([(string | null)] & [string] = [string])"},
		{"tags intersect", `{"type":"object","properties":{"kind":{"const":"a"}},"required":["kind"],
			"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{}}},{"type":"object","properties":{"kind":{"const":"b"}}}]}`,
			"({kind: S(a), ...any} & ({kind?: S(a), x?: any, ...any} | {kind?: S(b), ...any}) = {kind: S(a), x?: any, ...any})"},
	} {
		if got := show(request(t, tt.schema).Type); got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestNullable(t *testing.T) {
	for _, tt := range []struct {
		schema, rest string
		nullable     bool
	}{
		{`{"type":["string","null"]}`, "string", true},
		{`{"type":["string","integer","null"]}`, "(string | integer)", true},
		{`{"type":"string"}`, "string", false},
		{`{"type":["string","integer"]}`, "(string | integer)", false},
		{`{"type":"null"}`, "null", false}, // nothing would be left
		{`{}`, "any", false},
		{`{"allOf":[{"type":["object","null"]},{"type":["object","null"],"properties":{"a":{}}}]}`, "{a?: any, ...any}", true},
		{`{"anyOf":[{"$ref":"#/definitions/d"},{"type":"string"}],"definitions":{"d":{"type":["integer","null"]}}}`, "(XRequestD | string)", true},
		{`{"allOf":[{"$ref":"#/definitions/d"}],"definitions":{"d":{"type":["integer","null"]}}}`, "XRequestD", true},
	} {
		rest, nullable := request(t, tt.schema).Type.Nullable()
		if got := show(rest); got != tt.rest || nullable != tt.nullable {
			t.Errorf("%s: %s, %v, want %s, %v", tt.schema, got, nullable, tt.rest, tt.nullable)
		}
	}
}

// A type has one name wherever it is met, and no two types have the same.
func TestNames(t *testing.T) {
	api := modeltest.Capabilities(t, `
		{"name":"get-user","inputSchema":{"type":["object","null"],"properties":{
			"role":{"enum":["a","b"]},
			"list":{"type":"array","items":{"type":"object","properties":{"x":{}}}},
			"pick":{"oneOf":[{"type":"object","properties":{"kind":{"const":"one"}},"required":["kind"]},{"type":"object","properties":{"y":{}}}]},
			"other":{"type":"object","additionalProperties":{"enum":[1,2]}},
			"def":{"$ref":"#/definitions/my-part"}},
			"definitions":{"my-part":{"type":"object","properties":{"again":{"$ref":"#"}}}}}},
		{"name":"get_user"},{"name":"2fa"}`)
	var named []string
	for _, n := range api.Types {
		named = append(named, n.Name)
	}
	if got, want := strings.Join(named, " "),
		"GetUser_5d95Request GetUser_5d95RequestMyPart GetUser_5d95Response GetUser_bf1eRequest GetUser_bf1eResponse X2faRequest X2faResponse"; got != want {
		t.Errorf("named types\n%s, want\n%s", got, want)
	}
	root := api.Capabilities[0].Request
	if root.NotNull != "GetUser_5d95RequestObject" {
		t.Errorf("the object without null is %q", root.NotNull)
	}
	object, _ := root.Type.Nullable()
	want := map[string]string{
		"role": "GetUser_5d95RequestRole", "list": "GetUser_5d95RequestListItem", "pick": "GetUser_5d95RequestPick", "other": "GetUser_5d95RequestOther",
	}
	for _, m := range object.Members {
		inner := m.Type
		if inner.Kind == model.Array {
			inner = inner.Elem
		}
		if m.Name != "def" && inner.Name != want[m.Name] {
			t.Errorf("%s is named %q, want %q", m.Name, inner.Name, want[m.Name])
		}
		switch m.Name {
		case "pick":
			if a, b := inner.Of[0].Name, inner.Of[1].Name; a != "GetUser_5d95RequestPickOne" || b != "GetUser_5d95RequestPickObject" {
				t.Errorf("the parts of the union are named %q and %q", a, b)
			}
		case "other":
			if got := inner.Elem.Name; got != "GetUser_5d95RequestOtherValue" {
				t.Errorf("the values of other are named %q", got)
			}
		}
	}
	for _, n := range api.Types {
		if want := n.Name == "GetUser_5d95Request" || n.Name == "GetUser_5d95RequestMyPart"; n.Recursive != want {
			t.Errorf("%s: recursive = %v", n.Name, n.Recursive)
		}
	}
}

func TestCapabilitiesKeepWhatIsDeclared(t *testing.T) {
	api := modeltest.Capabilities(t, `{"name":"b","skill":"run","description":"Does b.","timeoutMs":1500},{"name":"a"}`)
	if got := strings.Join(api.Names(), " "); got != "b a" {
		t.Errorf("names %q, want the declared order", got)
	}
	b := api.Capabilities[0]
	if b.Skill != "run" || b.Doc != "Does b." || b.Timeout.Milliseconds() != 1500 || show(b.Request.Type) != "any" || show(b.Response.Type) != "any" {
		t.Errorf("b is %+v", b)
	}
	if a := api.Capabilities[1]; a.Timeout != 0 || a.Skill != "a" {
		t.Errorf("a is %+v", a)
	}
}

// Intersections that would not end, or would be huge, come to one side of them,
// which accepts more.
func TestIntersectionsEnd(t *testing.T) {
	wide := func(prefix string, n int) string {
		var branches []string
		for i := range n {
			name := prefix + strings.Repeat("x", i+1)
			branches = append(branches, `{"type":"object","properties":{"`+name+`":{}},"required":["`+name+`"],"additionalProperties":false}`)
		}
		return `{"oneOf":[` + strings.Join(branches, ",") + `]}`
	}
	flat := func(schema string) *model.Type { return request(t, schema).Type.Flatten() }
	if got := flat(`{"allOf":[` + wide("a", 8) + `,` + wide("b", 8) + `]}`); got.Kind != model.Never {
		t.Errorf("8 by 8 objects with nothing in common: %s", show(got))
	}
	if got := flat(`{"allOf":[` + wide("a", 9) + `,` + wide("b", 8) + `]}`); got.Kind != model.Union || len(got.Of) != 9 {
		t.Errorf("9 by 8 objects: %s, want the first side", show(got))
	}
	self := flat(`{"allOf":[{"type":"object","properties":{"next":{"$ref":"#"}}},{"type":"object","required":["next"]}]}`)
	if got := show(self); got != "{next: XRequest, ...any}" {
		t.Errorf("an intersection inside itself: %s", got)
	}
}
