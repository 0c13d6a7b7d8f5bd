package projection_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/mcpbridge/projection"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// A tally counts what became of arguments that a schema accepts.
type tally struct{ written, narrowed int }

// hold checks one projection of a schema with arguments that the schema accepts: that a
// model can write them, and that what it writes means them. Only what was reported may
// keep it from that.
func hold(t testing.TB, full *schema.Schema, p *projection.Projected, sent *schema.Schema, valid []byte, count *tally) {
	t.Helper()
	narrows := slices.ContainsFunc(p.Dropped, func(d projection.Drop) bool { return d.Narrows })
	written, ok := p.Write(valid)
	if !ok || !sent.Valid(written) {
		if count.narrowed++; !narrows {
			t.Fatalf("%s cannot be written, and nothing says so\nschema  %s\nsent    %s\nwritten %s\n%s", valid, full.Source(), p.Schema, written, report(p))
		}
		return
	}
	count.written++
	meant := p.Restore(written)
	if !full.Valid(meant) {
		t.Fatalf("%s means %s, which is invalid\nschema %s\nsent   %s", written, meant, full.Source(), p.Schema)
	}
	if !equal(t, meant, valid) {
		t.Fatalf("%s means %s instead of %s\nschema %s\nsent   %s", written, meant, valid, full.Source(), p.Schema)
	}
}

// equal compares values whatever the order of their members. Numbers have to be written
// alike.
func equal(t testing.TB, a, b []byte) bool {
	t.Helper()
	return canonical(t, a) == canonical(t, b)
}

func canonical(t testing.TB, doc []byte) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(string(doc)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// projections are the projections of a schema, each compiled as a provider would.
type projections struct {
	full *schema.Schema
	all  []*projection.Projected
	sent []*schema.Schema
}

func projectAll(t testing.TB, full *schema.Schema) projections {
	t.Helper()
	made := projections{full: full}
	for _, name := range projection.Names() {
		p := project(t, name, string(full.Source()))
		made.all = append(made.all, p)
		made.sent = append(made.sent, compile(t, p.Schema))
		if name != "gemini" {
			strict(t, p.Schema, name == "openai-strict")
		}
	}
	return made
}

// strict checks that all objects of a schema are closed, and with allRequired that they
// require all that they have.
func strict(t testing.TB, src json.RawMessage, allRequired bool) {
	t.Helper()
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok && v["type"] == "object" {
				if v["additionalProperties"] != false {
					t.Fatalf("an open object: %s", src)
				}
				if required, _ := v["required"].([]any); allRequired && len(required) != len(properties) {
					t.Fatalf("optional members: %s", src)
				}
				for _, p := range properties {
					walk(p)
				}
				delete(v, "properties")
			}
			for _, banned := range []string{"allOf", "oneOf", "not", "if", "then", "else", "const", "minLength", "maxLength", "patternProperties", "prefixItems", "default", "definitions"} {
				if _, has := v[banned]; has {
					t.Fatalf("%s: %s", banned, src)
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	var v any
	if err := json.Unmarshal(src, &v); err != nil {
		t.Fatal(err)
	}
	walk(v)
}

// The official suites of JSON Schema: each valid object of each schema.
func TestSuites(t *testing.T) {
	counts := make([]tally, len(projection.Names()))
	for path, dialect := range map[string]schema.Dialect{
		"draft7": schema.DialectDraft07, "draft2020-12": schema.Dialect202012,
	} {
		data, err := os.ReadFile("../../testdata/conformance/json-schema-test-suite/" + path + ".json")
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups(t, data) {
			if !slices.ContainsFunc(g.Tests, func(c example) bool { return c.Valid && c.Data[0] == '{' }) {
				continue
			}
			src := string(g.Schema)
			if dialect == schema.DialectDraft07 && strings.HasPrefix(src, "{") && !strings.Contains(src, `"$schema"`) {
				src = `{"$schema":"http://json-schema.org/draft-07/schema#",` + strings.TrimPrefix(src, "{")
				src = strings.Replace(src, ",}", "}", 1)
			}
			full, err := schema.CompileWith([]byte(src), schema.CompileOptions{Profile: schema.ProfileFull, Dialect: dialect})
			if err != nil {
				continue // it refers to other documents
			}
			made := projectAll(t, full)
			for _, c := range g.Tests {
				if c.Data[0] != '{' || !full.Valid(c.Data) {
					continue
				}
				for i, p := range made.all {
					hold(t, full, p, made.sent[i], c.Data, &counts[i])
				}
			}
		}
	}
	for i, name := range projection.Names() {
		t.Logf("%s: %d can be written, %d cannot and it is said", name, counts[i].written, counts[i].narrowed)
		if counts[i].written < 100 {
			t.Errorf("%s: only %d", name, counts[i].written)
		}
	}
}

type group struct {
	Schema json.RawMessage
	Tests  []example
}

type example struct {
	Data  json.RawMessage
	Valid bool
}

// groups reads all groups of a suite, whatever the file holds them in.
func groups(t testing.TB, data []byte) (all []group) {
	t.Helper()
	var list []group
	if json.Unmarshal(data, &list) == nil && len(list) > 0 && list[0].Schema != nil {
		return list
	}
	var nested map[string]json.RawMessage
	if err := json.Unmarshal(data, &nested); err == nil {
		for _, inner := range nested {
			all = append(all, groups(t, inner)...)
		}
		return all
	}
	var lists []json.RawMessage
	if json.Unmarshal(data, &lists) == nil {
		for _, inner := range lists {
			all = append(all, groups(t, inner)...)
		}
	}
	return all
}

// schemas draws schemas of arguments, with few names so that keywords meet.
type schemas struct{ t *rapid.T }

func (g schemas) pick(from ...string) string { return rapid.SampledFrom(from).Draw(g.t, "pick") }
func (g schemas) odds(n int) bool            { return rapid.IntRange(1, n).Draw(g.t, "odds") == 1 }

func (g schemas) leaf() string {
	return g.pick(`{}`, `true`, `{"type":"string"}`, `{"type":"string","minLength":1}`, `{"type":"integer"}`, `{"type":"number","minimum":0}`, `{"type":"boolean"}`,
		`{"type":"null"}`, `{"type":["string","null"]}`, `{"enum":["a",1,null]}`, `{"const":"b"}`, `{"$ref":"#/$defs/d"}`, `{"type":"object"}`,
		`{"type":"string","pattern":"^a"}`, `{"const":{"a":1}}`, `{"type":["integer","array","string"],"maximum":5}`, `{"minLength":1}`, `{"not":{"type":"string"}}`,
		`{"type":"string","description":"Some \"text\".","default":"x"}`, `{"multipleOf":2,"type":"integer"}`)
}

func (g schemas) value(depth int) string {
	if depth == 0 || g.odds(4) {
		return g.leaf()
	}
	switch rapid.IntRange(0, 5).Draw(g.t, "kind") {
	case 0:
		return `{"type":"array","items":` + g.value(depth-1) + g.pick(``, `,"minItems":1`, `,"maxItems":2`, `,"uniqueItems":true`) + `}`
	case 1:
		return `{"` + g.pick("anyOf", "oneOf") + `":[` + g.value(depth-1) + `,` + g.value(depth-1) + `]` + g.pick(``, `,"type":"object"`, `,"properties":{"a":{"type":"string"}}`) + `}`
	case 2:
		return `{"allOf":[` + g.object(depth-1) + `,` + g.value(depth-1) + `]}`
	case 3:
		return `{"type":"array","prefixItems":[` + g.value(depth-1) + `,` + g.leaf() + `],"items":` + g.pick(`false`, `true`, `{"type":"string"}`) + `}`
	default:
		return g.object(depth)
	}
}

func (g schemas) object(depth int) string {
	var members []string
	for _, name := range []string{"a", "b", "a b"} {
		if !g.odds(3) {
			members = append(members, fmt.Sprintf("%q:%s", name, g.value(max(0, depth-1))))
		}
	}
	return `{` + g.pick(`"type":"object",`, `"type":"object",`, `"type":["object","null"],`, ``) + `"properties":{` + strings.Join(members, ",") + `}` +
		g.pick(``, `,"required":["a"]`, `,"required":["a","z"]`) +
		g.pick(``, `,"additionalProperties":false`, `,"additionalProperties":false`, `,"additionalProperties":{"type":"string"}`, `,"patternProperties":{"^z":{"type":"integer"}}`) +
		g.pick(``, ``, `,"anyOf":[{"required":["a"]},{"required":["b"]}]`, `,"if":{"required":["a"]},"then":{"required":["b"]}`, `,"minProperties":1`) + `}`
}

// value draws a value over the same names.
func (g schemas) sample(depth int) string {
	if depth == 0 || g.odds(3) {
		return g.pick(`"a"`, `"b"`, `""`, `"ab"`, `1`, `4`, `9007199254740993`, `0.5`, `true`, `null`, `{}`, `[]`, `{"a":1}`, `"null"`, `"[1]"`)
	}
	if g.odds(3) {
		return `[` + g.sample(depth-1) + g.pick(``, `,`+g.sample(depth-1)) + `]`
	}
	var members []string
	for _, name := range []string{"a", "b", "a b", "z"} {
		if g.odds(2) {
			members = append(members, fmt.Sprintf("%q:%s", name, g.sample(depth-1)))
		}
	}
	return `{` + strings.Join(members, ",") + `}`
}

// Whatever a schema accepts can be written by each projection, or the projection says
// why not.
func TestNothingIsLost(t *testing.T) {
	counts := make([]tally, len(projection.Names()))
	rapid.Check(t, func(rt *rapid.T) {
		g := schemas{rt}
		src := g.object(2)
		src = src[:len(src)-1] + `,"$defs":{"d":` + g.pick(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"type":"string"}}}`, g.value(1)) + `}}`
		full, err := schema.CompileWith([]byte(src), schema.CompileOptions{Profile: schema.ProfileFull})
		if err != nil {
			rt.Skip(err)
		}
		made := projectAll(t, full)
		for i, p := range made.all {
			// Where values are written as they are, the prover sees more than samples do.
			narrows := slices.ContainsFunc(p.Dropped, func(d projection.Drop) bool { return d.Narrows })
			if p.Rewrites() || narrows || !strings.HasPrefix(src, `{"type":"object"`) { // arguments are objects anyway
				continue
			}
			if c := contain.IsSubschemaWithin(t.Context(), full, made.sent[i], contain.Budget{Steps: 20_000}); c.Answer == contain.Refuted {
				t.Fatalf("%s cannot be written, and nothing says so\nschema %s\nsent   %s", c.Witness, src, p.Schema)
			}
		}
		for range 30 {
			if value := []byte(g.sample(3)); value[0] == '{' && full.Valid(value) {
				for i, p := range made.all {
					hold(t, full, p, made.sent[i], value, &counts[i])
				}
			}
		}
	})
	for i, name := range projection.Names() {
		t.Logf("%s: %d can be written, %d cannot and it is said", name, counts[i].written, counts[i].narrowed)
	}
}

// Neither a strange schema nor strange arguments do any harm.
func FuzzProject(f *testing.F) {
	f.Add([]byte(tree), []byte(`{"root":{"n":1,"next":null}}`))
	f.Add([]byte(`{"type":"object","properties":{"a b":{},"c":{"type":"object"}}}`), []byte(`{"a b":"{}","c":"x"}`))
	f.Add([]byte(`{"anyOf":[{"type":"object"},{"$ref":"#"}]}`), []byte(`{"arguments":"{}"}`))
	f.Add([]byte(`true`), []byte(`null`))
	f.Fuzz(func(t *testing.T, src, args []byte) {
		for _, name := range projection.Names() {
			p, err := named(t, name).Project(src)
			if err != nil {
				return
			}
			compile(t, p.Schema)
			meant := p.Restore(args)
			if json.Valid(args) && !json.Valid(meant) {
				t.Fatalf("%s of %q", meant, args)
			}
		}
	})
}
