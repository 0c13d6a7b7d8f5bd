package schema_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// absent are the payloads of calls without arguments.
func absent() []string { return []string{"", " ", "null", " null\n", "\r\n\tnull\t"} }

// Each schema that may stand around the parameters of a function: what is judged
// in place of null, and whether it passes.
func TestArguments(t *testing.T) {
	const object, null = "{}", "null"
	for _, c := range []struct {
		schema, judged string
		valid          bool
	}{
		{`{"type":"object"}`, object, true},
		{`{"type":"object","required":["a"]}`, object, false},
		{`{"type":["object","string"]}`, object, true},
		{`{"type":["object","null"],"required":["a"]}`, null, true},
		{`{"type":"string"}`, null, false},
		{`{"type":["string","array"]}`, null, false},
		{`{}`, null, true},
		{`{"required":["a"]}`, null, true},
		{`{"properties":{"a":{"type":"string"}}}`, null, true},
		{`{"allOf":[{"type":"object"},{"required":["a"]}]}`, object, false},
		{`{"allOf":[{"type":["object","string"]},{"type":["string","null"]}]}`, null, false},
		{`{"allOf":[{"allOf":[{"type":"object"}]}]}`, object, true},
		{`{"anyOf":[{"type":"string"},{"type":"object"}]}`, object, true},
		{`{"anyOf":[{"type":"string"},{"type":"array"}]}`, null, false},
		{`{"anyOf":[{"type":"object"},{"type":"null"}]}`, null, true},
		{`{"oneOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}`, object, false},
		{`{"oneOf":[{"type":"object"},{"required":["b"],"not":{"const":null}}]}`, object, true},
		{`{"allOf":[{"$ref":"#/definitions/p"}],"definitions":{"p":{"type":"object","additionalProperties":false}}}`, object, true},
		{`{"anyOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"type":"object"}}}`, object, true},
		{`{"type":"object","properties":{"next":{"$ref":"#"}}}`, object, true},
		{`{"const":{}}`, object, true},
		{`{"const":{"a":1}}`, object, false},
		{`{"const":[]}`, null, false},
		{`{"enum":["a",{"b":1}]}`, object, false},
		{`{"enum":["a",1]}`, null, false},
		{`{"type":"object","enum":["a"]}`, null, false},
		{`{"not":{"type":"null"}}`, object, true},
		{`{"not":{"type":["null","object"]}}`, object, false}, // not says nothing about types
	} {
		s := schematest.MustCompile(t, c.schema)
		for _, s := range []*schema.Schema{s, s.WithLimits(schema.Limits{MaxViolations: 1})} {
			for _, payload := range absent() {
				if got := string(s.Arguments([]byte(payload))); got != c.judged || s.Valid([]byte(got)) != c.valid {
					t.Errorf("%s: %q is judged as %s, want %s, valid %v", c.schema, payload, got, c.judged, c.valid)
				}
			}
		}
		for _, payload := range []string{`{}`, `{"a":null}`, `[null]`, `"null"`, `0`, ` {`, `nul`, `null null`} {
			if got := string(s.Arguments([]byte(payload))); got != payload {
				t.Errorf("%s: %q is judged as %q", c.schema, payload, got)
			}
		}
	}
}

// The rule against brute force: a call without arguments passes exactly if null or
// {} does; null stands for itself wherever it passes; and otherwise {} stands for
// it exactly if the keywords that name types leave objects, which the validator
// decides for a schema that has only these.
func TestArgumentsAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		s := schematest.DrawSchema(3).Draw(t, "schema")
		compiled := f.Need(t, s)[0]
		passesNull, passesEmpty := compiled.Valid([]byte("null")), compiled.Valid([]byte("{}"))

		types := schematest.Family{Definitions: typesOnly(f.Definitions).(schematest.Map)}
		onlyTypes, ok := types.Compile(typesOnly(s).(schematest.Map))
		if !ok {
			t.Skip("the types alone repeat a value")
		}
		want := "null"
		if !passesNull && onlyTypes.Valid([]byte("{}")) {
			want = "{}"
		}
		for _, payload := range absent() {
			judged := compiled.Arguments([]byte(payload))
			if string(judged) != want || compiled.Valid(judged) != (passesNull || passesEmpty) {
				t.Fatalf("%s: %q is judged as %s, want %s; null passes %v, {} %v", compiled.Source(), payload, judged, want, passesNull, passesEmpty)
			}
		}
		if passesNull || want == "{}" {
			return
		}
		// A call that must have arguments is told about them, not about null.
		if value := schematest.DrawValue(2).Draw(t, "value"); value[0] == '{' && compiled.Valid([]byte(value)) {
			t.Fatalf("%s takes %s, and null is judged as null", compiled.Source(), value)
		}
	})
}

// typesOnly is a schema without what judges more than a value's type: const and enum
// become the types of their values, oneOf becomes anyOf, and definitions stay.
func typesOnly(s any) any {
	in, ok := s.(schematest.Map)
	if !ok {
		return s
	}
	out := schematest.Map{}
	var all []any
	for _, key := range slices.Sorted(maps.Keys(in)) {
		switch v := in[key]; key {
		case "type", "$ref":
			out[key] = v
		case "D0", "D1": // definitions
			out[key] = typesOnly(v)
		case "const":
			all = append(all, schematest.Map{"type": typesOf(v.(json.RawMessage))})
		case "enum":
			all = append(all, schematest.Map{"type": typesOf(v.([]json.RawMessage)...)})
		case "anyOf", "oneOf", "allOf":
			var branches []any
			for _, b := range v.([]schematest.Map) {
				branches = append(branches, typesOnly(b))
			}
			if key == "oneOf" {
				key = "anyOf"
			}
			all = append(all, schematest.Map{key: branches})
		}
	}
	if len(all) > 0 {
		out["allOf"] = all
	}
	return out
}

func typesOf(values ...json.RawMessage) []string {
	var types []string
	for _, v := range values {
		name := "number"
		switch v[0] {
		case '{':
			name = "object"
		case '[':
			name = "array"
		case '"':
			name = "string"
		case 'n':
			name = "null"
		case 't', 'f':
			name = "boolean"
		}
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return types
}

// Definitions that refer to each other twice must not make the decision
// exponential.
func TestArgumentsOfSharedDefinitions(t *testing.T) {
	definitions := schematest.Map{"d40": schematest.Map{"type": "object"}}
	for i := range 40 {
		ref := schematest.Map{"$ref": "#/definitions/d" + strconv.Itoa(i+1)}
		definitions["d"+strconv.Itoa(i)] = schematest.Map{"allOf": []any{ref, ref}}
	}
	src, err := json.Marshal(schematest.Map{"allOf": []any{schematest.Map{"$ref": "#/definitions/d0"}}, "definitions": definitions})
	if err != nil {
		t.Fatal(err)
	}
	if got := schematest.MustCompile(t, string(src)).Arguments(nil); string(got) != "{}" {
		t.Errorf("judged as %s", got)
	}
}

func BenchmarkArguments(b *testing.B) {
	s := schematest.MustCompile(b, `{"type":"object"}`)
	payload := []byte(`{"a":1}`)
	b.ReportAllocs()
	for b.Loop() {
		s.Arguments(payload)
	}
}
