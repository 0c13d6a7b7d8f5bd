package gojsonschema_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/schema"
)

// with is a capabilities file whose one capability x has that input schema.
func with(inputSchema string) string {
	return "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, inputSchema: " + inputSchema + "}]}"
}

// load parses a capabilities file as programs with the second opinion do.
func load(t testing.TB, src string) (*capability.Document, error) {
	t.Helper()
	return capability.Parse("f.yaml", []byte(src), capability.LoadOptions{ValidateSchemas: true, SecondOpinion: gojsonschema.NewSecondOpinion()})
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDefaultsAndExamplesMustPass(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"good", `{type: object, default: {}, examples: [{a: 1}], properties: {a: {type: integer, default: 3, examples: [1, 2.0]}}}`, ""},
		{"default", `{type: object, properties: {a: {type: integer, minimum: 2, default: 1}}}`,
			`f.yaml:1:182: /capabilities/0/inputSchema/properties/a/default: capability "x" inputSchema: the default does not pass its own schema: number < minimum 2 (correct one of them)`},
		{"example inside an object", `{type: object, properties: {a: {type: integer}}, examples: [{a: 1}, {a: x}]}`,
			`/capabilities/0/inputSchema/examples/1: capability "x" inputSchema: the example does not pass its own schema: /a: expected type integer but got string (correct one of them)`},
		{"in a definition", `{definitions: {d: {type: string, default: 1}}}`, `/inputSchema/definitions/d/default`},
		{"in a branch", `{oneOf: [{type: string, examples: [a, 1]}, {type: "null"}]}`, `/inputSchema/oneOf/0/examples/1`},
		{"deep", `{oneOf: [{type: string}, {not: {items: {additionalProperties: {type: "null", default: 0}}}}]}`, `/inputSchema/oneOf/1/not/items/additionalProperties/default`},
		{"through references", `{definitions: {a/b: {type: object, properties: {next: {$ref: "#/definitions/a~1b"}}, additionalProperties: false}}, properties: {x: {$ref: "#/definitions/a~1b", default: {next: {nxt: 1}}}}}`,
			`the default does not pass its own schema: /next/nxt: additional property`},
		{"through the root", `{type: object, properties: {kids: {items: {$ref: "#"}, examples: [[{kids: [{}]}], [{kids: [1]}]]}}}`,
			`/inputSchema/properties/kids/examples/1: capability "x" inputSchema: the example does not pass its own schema: /0/kids/0: expected type object but got number`},
		{"where gojsonschema is not safe", `{oneOf: [{type: "null"}, {items: {$ref: "#"}, type: array}], examples: [[null, [null]], [1]]}`,
			`/inputSchema/examples/1: capability "x" inputSchema: the example does not pass its own schema: `},
		{"beyond gojsonschema's numbers", `{const: 9007199254740993, examples: [9007199254740993, 9007199254740992]}`, `/inputSchema/examples/1`},
		{"a value that the library cannot judge", `{type: number, default: 1e400, examples: [-1e400]}`, ""},
		{"a value that neither takes", `{type: string, default: 1e400}`, `/inputSchema/default: capability "x" inputSchema: the default does not pass its own schema: expected type string but got number`},
		{"in every kind of subschema", `{properties: {a: {additionalProperties: {items: {allOf: [{anyOf: [{not: {oneOf: [{type: string, default: 1}]}}]}]}}}}}`,
			`/inputSchema/properties/a/additionalProperties/items/allOf/0/anyOf/0/not/oneOf/0/default`},
		{"null as a default", `{type: object, properties: {a: {type: string, default: null}}}`, `expected type string but got null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, with(c.schema))
			got := message(err)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Count(got, "\n") > 0 {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if _, err := capability.Parse("f.yaml", []byte(with(c.schema)), capability.LoadOptions{}); err != nil {
				t.Errorf("for inspection: %v", err)
			}
		})
	}
}

// Faults of the meta-schema are reported too, and the library's objections to
// every part of the schema arrive in one load.
func TestEveryObjectionIsReported(t *testing.T) {
	_, err := load(t, with(`{properties: {a: {type: string, default: 1}, b: {type: integer, examples: [1, x, y]}}}`))
	var got []string
	for line := range strings.Lines(message(err)) {
		_, pointer, _ := strings.Cut(line, "/inputSchema")
		pointer, _, _ = strings.Cut(pointer, ":")
		got = append(got, pointer)
	}
	if want := "/properties/a/default /properties/b/examples/1 /properties/b/examples/2"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s\nin %v", strings.Join(got, " "), want, err)
	}
}

// One review serves a whole load: it keeps nothing of one schema for the next.
func TestASecondOpinionIsShared(t *testing.T) {
	review := gojsonschema.NewSecondOpinion()
	good, bad := compiled(t, `{"type":"string","default":"a"}`), compiled(t, `{"type":"string","default":1}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				if faults := review(bad); len(faults) != 1 || faults[0].Pointer != "/default" || faults[0].Hint != "correct one of them" {
					t.Errorf("got %+v", faults)
				}
				if faults := review(good); len(faults) != 0 {
					t.Errorf("got %+v", faults)
				}
			}
		})
	}
	wg.Wait()
}

func compiled(t *testing.T, source string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The files that users start from carry no objection.
func TestSampleFilesPass(t *testing.T) {
	for _, agent := range []string{"concierge", "librarian", "pr-reviewer"} {
		src, err := os.ReadFile("../../agents/" + agent + "/capabilities.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := load(t, string(src)); err != nil {
			t.Errorf("%s: %v", agent, err)
		}
	}
}

func TestEngine(t *testing.T) {
	var engine capability.Engine = gojsonschema.Engine{}
	e, err := capability.EngineNamed("gojsonschema", engine)
	if err != nil || e != engine {
		t.Fatalf("got %v, %v", e, err)
	}
	doc, err := load(t, with(`{type: object, properties: {severity: {enum: [low, med, high]}}, required: [severity]}`))
	if err != nil {
		t.Fatal(err)
	}
	if doc, err = doc.WithEngine(e); err != nil {
		t.Fatal(err)
	}
	c, _ := doc.Lookup("x")
	if _, ok := c.Input.Validator.(*gojsonschema.Validator); !ok {
		t.Errorf("the validator is a %T", c.Input.Validator)
	}
	if r := c.Input.Check([]byte(`{"severity":"low"}`)); r.Verdict != schema.Valid {
		t.Errorf("got %+v", r)
	}
	if r := c.Input.Check([]byte(`{"severity":"critical"}`)); r.Verdict != schema.Invalid || r.Violations[0].Path != "/severity" {
		t.Errorf("got %+v", r)
	}

	doc, err = load(t, with(`{oneOf: [{type: "null"}, {items: {$ref: "#"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = doc.WithEngine(e)
	if want := `capability "x" inputSchema: the gojsonschema engine refuses the schema: recursion through oneOf, anyOf, allOf or not at /oneOf/1 (use the native validator)`; !strings.Contains(message(err), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// BenchmarkParseManyDefaults loads a schema with a default on each of 200
// properties, each of which is compiled and checked by both engines.
func BenchmarkParseManyDefaults(b *testing.B) {
	var properties strings.Builder
	for i := range 200 {
		fmt.Fprintf(&properties, "p%d: {type: integer, default: %d}, ", i, i)
	}
	src := with("{properties: {" + properties.String() + "}}")
	for b.Loop() {
		if _, err := load(b, src); err != nil {
			b.Fatal(err)
		}
	}
}
