package model_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/modeltest"
)

// Literals become the narrowest type that every language can write.
func TestLiterals(t *testing.T) {
	for schema, want := range map[string]string{
		`{"const":null}`:                         "null",
		`{"const":true}`:                         "B(true)",
		`{"const":""}`:                           "S()",
		`{"const":"\u00e9\n\"\\"}`:               "S(é\n\"\\)",
		`{"const":0}`:                            "I(0)",
		`{"const":-0.0}`:                         "I(0)",
		`{"const":1E+2}`:                         "I(100)",
		`{"const":25e-1}`:                        "N(2.5)",
		`{"const":1e-7}`:                         "N(1e-07)",
		`{"const":9223372036854775807}`:          "I(9223372036854775807)",
		`{"const":9223372036854775808}`:          "bigint",
		`{"const":-9223372036854775808}`:         "I(-9223372036854775808)",
		`{"const":-9223372036854775809}`:         "bigint",
		`{"const":1e400}`:                        "bigint",
		`{"const":1e-400}`:                       "number", // a double makes 0 of it
		`{"const":1e999999}`:                     "bigint",
		`{"const":1.0000000000000000000000001}`:  "number", // a double makes 1 of it
		`{"const":[]}`:                           "<>",
		`{"const":[null,true,1,2.5,"a",[],{}]}`:  "<null, B(true), I(1), N(2.5), S(a), <>, {}>",
		`{"const":[1e400,"x"]}`:                  "<number, S(x)>",
		`{"const":{"b":1,"a":{"deep":[false]}}}`: "{b: I(1), a: {deep: <B(false)>}}",
		`{"enum":[1,2,1.5,3]}`:                   "N(1 2 1.5 3)",
		`{"enum":[false,null,true]}`:             "(boolean | null)",
		`{"enum":["a",1,"b",2]}`:                 "(S(a b) | I(1 2))",
		`{"enum":[[1],[2]]}`:                     "(<I(1)> | <I(2)>)",
		`{"enum":["a","b"],"const":"b"}`:         "S(b)",
	} {
		if got := show(request(t, schema).Type); got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
}

// Assertions beside each other narrow the kinds of values before types are built.
func TestKindsNarrow(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","enum":[1,2]}`:                                               "never",
		`{"type":"number","allOf":[{"type":"integer"}]}`:                               "integer",
		`{"type":"integer","enum":[1,1.5]}`:                                            "I(1)",
		`{"type":"integer","anyOf":[{"type":"number"},{"type":"string"}]}`:             "integer",
		`{"type":"number","enum":[1,1.5,"1"]}`:                                         "N(1 1.5)",
		`{"type":["string","null"],"oneOf":[{"type":"null"},{"type":"integer"}]}`:      "null",
		`{"type":"string","allOf":[{"type":"integer"}]}`:                               "never",
		`{"type":"string","anyOf":[false]}`:                                            "never",
		`{"type":"string","properties":{"a":{}},"items":{}}`:                           "string",
		`{"type":"array","properties":{"a":{"type":"null"}}}`:                          "[any]",
		`{"type":"object","items":{"type":"null"}}`:                                    "{...any}",
		`{"properties":{"a":{"type":"null"}}}`:                                         "({a?: null, ...any} | [any] | string | number | boolean | null)",
		`{"type":["null","object"],"required":["a"]}`:                                  "(null | {a: any, ...any})",
		`{"type":["boolean","integer"],"maximum":1e30}`:                                "(boolean | bigint)",
		`{"type":"integer","minimum":0,"exclusiveMinimum":-1e19}`:                      "bigint",
		`{"type":"integer","exclusiveMaximum":9223372036854775807}`:                    "integer",
		`{"type":"integer","maximum":9223372036854775807.5}`:                           "bigint",
		`{"anyOf":[{"type":"string","minLength":1},{"type":"string","maxLength":9}]}`:  "string",
		`{"allOf":[{},{"type":"boolean"},{}]}`:                                         "boolean",
		`{"allOf":[{}]}`:                                                               "any",
		`{"allOf":[{"type":"string"},{"pattern":"^a"}]}`:                               "string",
		`{"not":{"type":"string"}}`:                                                    "any", // widened
		`{"type":"object","properties":{"a":false}}`:                                   "{a?: never, ...any}",
		`{"type":"object","properties":{"a":false},"additionalProperties":false}`:      "{a?: never}",
		`{"type":"object","required":["a","a2"],"properties":{"a2":{"type":"null"}}}`:  "{a2: null, a: any, ...any}",
		`{"type":"object","additionalProperties":true}`:                                "{...any}",
		`{"type":"array","items":false}`:                                               "[never]",
		`{"type":"array","items":{"type":"array","items":{"type":["string","null"]}}}`: "[[(string | null)]]",
	} {
		if got := show(request(t, schema).Type); got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
}

// Where two parts of an intersection both say something of a member or an element,
// both count; where only one does, the other's rule for the rest does.
func TestIntersectionsOfStructure(t *testing.T) {
	object := func(keywords string) string { return `{"type":"object",` + keywords + `}` }
	for _, tt := range []struct{ name, a, b, want string }{
		{"members of both", object(`"properties":{"a":{"type":["string","null"]}}`), object(`"properties":{"a":{"type":["null","integer"]}}`),
			"{a?: null, ...any}"},
		{"members of each", object(`"properties":{"a":{"type":"string"}}`), object(`"properties":{"b":{"type":"null"}}`), "{a?: string, b?: null, ...any}"},
		{"required by the other", object(`"properties":{"a":{"type":"string"}}`), object(`"required":["a"]`), "{a: string, ...any}"},
		{"the other's rest", object(`"properties":{"a":{"type":["string","null"]}}`), object(`"additionalProperties":{"type":"string"}`), "{a?: string, ...string}"},
		{"closed without it", object(`"properties":{"a":{"type":"string"}}`), object(`"additionalProperties":false`), "{}"},
		{"closed, and it is required", object(`"properties":{"a":{}},"required":["a"]`), object(`"additionalProperties":false`), "never"},
		{"required of no common type", object(`"properties":{"a":{"type":"string"}},"required":["a"]`), object(`"properties":{"a":{"type":"null"}}`), "never"},
		{"optional of no common type", object(`"properties":{"a":{"type":"string"}}`), object(`"properties":{"a":{"type":"null"}}`), "{a?: never, ...any}"},
		{"the rests of both", object(`"additionalProperties":{"type":["string","null"]}`), object(`"additionalProperties":{"type":["null","integer"]}`), "{...null}"},
		{"rests of no common type", object(`"additionalProperties":{"type":"string"}`), object(`"additionalProperties":{"type":"null"}`), "{}"},
		{"arrays of no common type", `{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":"null"}}`, "[never]"},
		{"an array and an object", `{"type":["array","object"],"items":{"type":"null"}}`, `{"type":"array"}`, "[null]"},
		{"a union with one of its parts", `{"type":["array","string"],"items":{"type":"null"}}`, `{"type":["string","null"]}`, "string"},
		{"a tuple and an array", `{"const":[1,"a"]}`, `{"type":"array","items":{"type":["integer","string"]}}`, "<I(1), S(a)>"},
		{"a tuple and an array of other elements", `{"const":[1,"a"]}`, `{"type":"array","items":{"type":"integer"}}`, "never"},
		{"tuples that differ in length", `{"const":[1]}`, `{"enum":[[1,1],[]]}`, "never"},
		{"a tuple among others", `{"const":[1]}`, `{"enum":[[1],[2]]}`, "<I(1)>"},
		{"big integers", `{"type":"integer","minimum":-1e30}`, `{"type":"integer","maximum":5}`, "integer"},
		{"integers that are big twice", `{"type":"integer","minimum":-1e30}`, `{"type":"integer","maximum":1e30}`, "bigint"},
		{"an enum and its base", `{"enum":["a","b"]}`, `{"type":"string","minLength":1}`, "S(a b)"},
		{"an enum of integers and numbers", `{"enum":[1,2]}`, `{"type":"number"}`, "I(1 2)"},
		{"enums that share a value", `{"enum":[1,2,"a"]}`, `{"enum":["a",2,3]}`, "(I(2) | S(a))"},
	} {
		for _, order := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			got := show(request(t, `{"allOf":[`+order[0]+`,`+order[1]+`]}`).Type.Flatten())
			if got != tt.want && order[0] == tt.a {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
			if len(got) != len(tt.want) { // members may change places
				t.Errorf("%s: the other way round %s, want %s", tt.name, got, tt.want)
			}
		}
	}
}

// A label names a part of a union after what distinguishes it.
func TestLabels(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"null"}`:    "Null",
		`{"type":"boolean"}`: "Boolean",
		`{"type":"integer"}`: "Integer",
		`{"type":"number"}`:  "Number",
		`{"type":"string"}`:  "String",
		`{"type":"array"}`:   "Array",
		`{"type":"object"}`:  "Object",
		`{}`:                 "Value",
		`{"const":"a-b c"}`:  "ABC",
		`{"enum":["a","b"]}`: "Enum",
		`{"const":7}`:        "X7",
		`{"type":"object","properties":{"kind":{"const":"new-user"}},"required":["kind"]}`:                                   "NewUser",
		`{"type":"object","properties":{"kind":{"const":"new-user"}}}`:                                                       "Object", // may be absent
		`{"type":"object","properties":{"kind":{"enum":["a","b"]}},"required":["kind"]}`:                                     "Object", // says too little
		`{"type":"object","properties":{"kind":{"const":1}},"required":["kind"]}`:                                            "Object", // no word
		`{"type":"object","properties":{"n":{},"kind":{"const":"x"},"other":{"const":"y"}},"required":["n","kind","other"]}`: "X",
		`{"allOf":[{"type":"object","properties":{"kind":{"const":"x"}}},{"type":"object","required":["kind"]}]}`:            "X",
		`{"allOf":[{"$ref":"#/definitions/thing"}],"definitions":{"thing":{"type":"string"}}}`:                               "XRequestThing",
		`{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#"}}]}`:                                                "Value",
	} {
		if got := request(t, schema).Type.Label(); got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
}

// A type is recursive exactly if a value of it can hold another, by whatever path.
func TestRecursion(t *testing.T) {
	ref := func(name string) string { return `{"$ref":"#/definitions/` + name + `"}` }
	for _, tt := range []struct{ name, schema, want string }{
		{"by a member", `{"properties":{"a":{"$ref":"#"}}}`, "XRequest"},
		{"by an element", `{"items":{"$ref":"#"}}`, "XRequest"},
		{"by other members", `{"type":"object","additionalProperties":{"$ref":"#"}}`, "XRequest"},
		{"by a part of a union", `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, "XRequest"},
		{"by a part of an intersection", `{"allOf":[{"type":"object","properties":{"a":{"$ref":"#"}}},{"type":"object","required":["a"]}]}`, "XRequest"},
		{"through another", `{"properties":{"a":` + ref("d") + `},"definitions":{"d":{"items":` + ref("e") + `},"e":{"properties":{"b":{"$ref":"#"}}}}}`,
			"XRequest XRequestD XRequestE"},
		{"below the root", `{"properties":{"a":` + ref("d") + `},"definitions":{"d":{"items":` + ref("d") + `}}}`, "XRequestD"},
		{"twice the same, and not in itself", `{"properties":{"a":` + ref("d") + `,"b":` + ref("d") + `},"definitions":{"d":{"type":"string"}}}`, ""},
	} {
		var recursive []string
		for _, n := range modeltest.API(t, tt.schema).Types {
			if n.Recursive {
				recursive = append(recursive, n.Name)
			}
		}
		if got := strings.Join(recursive, " "); got != tt.want {
			t.Errorf("%s: %q are recursive, want %q", tt.name, got, tt.want)
		}
	}
}

// Definitions are built once each, named after their payload, and only if used. A
// name that others have as well tells them apart by a hash.
func TestDefinitions(t *testing.T) {
	api := modeltest.Capabilities(t, `{"name":"x",
		"inputSchema":{"type":"object","description":"The question.","properties":{"a":{"$ref":"#/definitions/part"},"b":{"$ref":"#/definitions/part"},
			"c":{"$ref":"#/definitions/Part"}},
			"definitions":{"part":{"type":"string","description":"A part."},"Part":{"type":"null"},"unused":{"type":"array"}}},
		"outputSchema":{"type":"array","items":{"$ref":"#/definitions/part"},"definitions":{"part":{"type":"boolean"}}}}`)
	var got []string
	for _, n := range api.Types {
		got = append(got, n.Name+"="+show(n.Type)+";"+n.Doc)
	}
	want := []string{
		"XRequest={a?: XRequestPart_888b, b?: XRequestPart_888b, c?: XRequestPart_2569, ...any};The question.", "XRequestPart_888b=string;A part.", "XRequestPart_2569=null;",
		"XResponse=[XResponsePart];", "XResponsePart=boolean;",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	x := api.Capabilities[0]
	if x.Request != api.Types[0] || x.Response != api.Types[3] || api.Agent != "agent://agent" || len(api.Digest) == 0 {
		t.Errorf("%+v of %s, digest %q", x, api.Agent, api.Digest)
	}
	a, b := x.Request.Type.Members[0].Type, x.Request.Type.Members[1].Type
	if a.Named != b.Named || a.Resolve().Kind != model.String || a.Resolve() != a.Named.Type {
		t.Errorf("two references lead to %p and %p, which is a %s", a.Named, b.Named, show(a.Resolve()))
	}
}

func TestMembersKeepTheirDescriptions(t *testing.T) {
	flat := request(t, `{"allOf":[
		{"type":"object","properties":{"a":{"type":"string","description":"first"},"b":{"type":"string"},"c":{}}},
		{"type":"object","properties":{"a":{"description":"second"},"b":{"description":"other"}}}]}`).Type.Flatten()
	for i, want := range []string{"first", "other", ""} {
		if m := flat.Members[i]; m.Doc() != want {
			t.Errorf("%s: %q, want %q", m.Name, m.Doc(), want)
		}
	}
}

func TestIsMap(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object"}`: true,
		`{"type":"object","additionalProperties":{"type":"string"}}`: true,
		`{"type":"object","additionalProperties":false}`:             false,
		`{"type":"object","properties":{"a":{}}}`:                    false,
		`{"type":"array"}`: false,
		`{}`:               false,
	} {
		if got := request(t, schema).Type.IsMap(); got != want {
			t.Errorf("%s: %v, want %v", schema, got, want)
		}
	}
}

// A document that was loaded to look at it has no schemas, and gives no types.
func TestDocumentWithoutSchemas(t *testing.T) {
	file := []byte(`{"version":1,"agent":"agent://agent","transports":[{"kind":"memory","topics":{"requests":"t"}}],
		"capabilities":[{"name":"bare"},{"name":"x","outputSchema":{"type":"string"}}]}`)
	doc, err := capability.Parse("capabilities.json", file, capability.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if api, err := model.New(doc); err == nil || err.Error() != `capability "x" was loaded without its schemas` {
		t.Errorf("%+v, %v", api, err)
	}
}

// Parts of a union that generated code has to name get different names, also where
// their labels are equal.
func TestNamesOfParts(t *testing.T) {
	root := request(t, `{"type":"object","properties":{
		"a":{"anyOf":[{"type":"object","properties":{"x":{}}},{"type":"object","properties":{"y":{}}},{"type":"null"}]},
		"A":{"enum":["p","q"]},
		"list":{"type":"array","items":{"type":"array","items":{"enum":[1,2]}}},
		"same":{"type":["object","null"],"properties":{"in":{"enum":["r","s"]}}}}}`).Type
	a, enum, list, same := root.Members[0].Type, root.Members[1].Type, root.Members[2].Type, root.Members[3].Type
	rest, nullable := a.Nullable()
	if !nullable || len(rest.Of) != 2 {
		t.Fatalf("without null it is %s", show(rest))
	}
	object, _ := same.Nullable()
	for want, got := range map[string]string{
		"XRequestA_efd5": rest.Name, "XRequestAObject": rest.Of[0].Name, "XRequestAObject2": rest.Of[1].Name, "XRequestA_b2b8": enum.Name,
		"XRequestListItemItem": list.Elem.Elem.Name, "XRequestSame": object.Name, "XRequestSameIn": object.Members[0].Type.Name,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	again, _ := a.Nullable()
	if again != rest {
		t.Error("without null it is another type each time: its name would be lost")
	}
}

// What types do not say is in the comments, in words.
func TestNotes(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string"}`: "",
		`{"type":"string","format":"uri","minLength":1,"description":"D."}`:               "D.\nFormat uri; at least 1 character.",
		`{"minLength":0,"maxLength":1}`:                                                   "At most 1 character.",
		`{"minLength":2,"maxLength":2,"pattern":"^a;$"}`:                                  "2 characters; pattern `^a;$`.",
		`{"minLength":1,"maxLength":20,"default":"x\ny"}`:                                 "1 to 20 characters; default `\"x\\ny\"`.",
		`{"minimum":0,"maximum":1e2,"default":null}`:                                      "0 to 1e2; default `null`.",
		`{"exclusiveMinimum":0,"maximum":10}`:                                             "More than 0; at most 10.",
		`{"minimum":1,"exclusiveMaximum":2}`:                                              "At least 1; less than 2.",
		`{"type":"array","maxItems":3,"uniqueItems":true,"items":{"format":"email"}}`:     "At most 3 items; all different; each format email.",
		`{"type":"array","items":{"type":"integer","minimum":1,"maximum":5,"default":2}}`: "Each 1 to 5.",
		`{"default":"` + strings.Repeat("é", 300) + `"}`:                                  "Default `\"" + strings.Repeat("é", 99) + "…`.",
	} {
		if got := request(t, schema).Doc; got != want {
			t.Errorf("%s: got %q, want %q", schema, got, want)
		}
		member := request(t, `{"type":"object","properties":{"a":`+schema+`}}`).Type.Members[0]
		if got := member.Doc(); got != want {
			t.Errorf("a member with %s: got %q, want %q", schema, got, want)
		}
	}
	both := request(t, `{"allOf":[{"type":"object","properties":{"a":{"type":"string","maxLength":9}}},{"type":"object","properties":{"a":{"description":"D.","maxLength":9,"format":"email"}}}]}`)
	if got, want := both.Type.Flatten().Members[0].Doc(), "D.\nAt most 9 characters; format email."; got != want {
		t.Errorf("an intersection: got %q, want %q", got, want)
	}
}
