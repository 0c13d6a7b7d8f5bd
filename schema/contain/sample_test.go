package contain_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

func TestSample(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"anything", `{}`, `"text"`},
		{"null", `{"type":"null"}`, `null`},
		{"valid example first", `{"type":"string","examples":[1,"Ada"]}`, `"Ada"`},
		{"default before invention", `{"type":"integer","default":7}`, `7`},
		{"invalid default is passed over", `{"type":"integer","minimum":8,"default":7}`, `8`},
		{"const", `{"const":{"a":[1]}}`, `{"a":[1]}`},
		{"enum", `{"enum":["red","green"]}`, `"red"`},
		{"enum cut by type", `{"enum":["red",3],"type":"integer"}`, `3`},
		{"email", `{"format":"email","type":"string"}`, `"user@example.com"`},
		{"uri", `{"format":"uri","type":"string"}`, `"https://example.com/"`},
		{"date-time", `{"format":"date-time","type":"string"}`, `"2026-01-15T09:30:00Z"`},
		{"format and length", `{"format":"uri","type":"string","maxLength":3}`, `"a:"`},
		{"pattern", `{"pattern":"^[A-Z]{2}-[0-9]{3}$","type":"string"}`, `"AA-000"`},
		{"patterns that meet", `{"allOf":[{"pattern":"^[a-m]{3}$"},{"pattern":"[m-z]"}],"type":"string"}`, `"maa"`},
		{"short string", `{"type":"string","maxLength":2}`, `"te"`},
		{"long string", `{"type":"string","minLength":12,"maxLength":12}`, `"text text tt"`},
		{"range", `{"type":"integer","minimum":18,"maximum":99}`, `18`},
		{"open range of integers", `{"type":"integer","exclusiveMinimum":18,"exclusiveMaximum":20}`, `19`},
		{"between two integers", `{"type":"number","exclusiveMinimum":1,"exclusiveMaximum":2}`, `1.5`},
		{"tiny range", `{"type":"number","exclusiveMinimum":1.25,"exclusiveMaximum":1.26}`, `1.255`},
		{"fewest elements", `{"type":"array","items":{"type":"boolean"},"minItems":2}`, `[true,true]`},
		{"different elements", `{"type":"array","items":{"type":"boolean"},"minItems":2,"uniqueItems":true}`, `[true,false]`},
		{"optional members are shown", `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}`, `{"name":"text","age":0}`},
		{"required without properties", `{"type":"object","required":["id"]}`, `{"id":"text"}`},
		{"optional member without value is absent", `{"type":"object","properties":{"x":false}}`, `{}`},
		{"recursion ends", `{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"]}`, `{"v":0}`},
		{"branch chosen by tag", `{"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"],"type":"object"},{"properties":{"k":{"const":"b"}},"required":["k"],"type":"object"}],"not":{"properties":{"k":{"const":"a"}}}}`, `{"k":"b"}`},
		{"number beyond float64", `{"type":"integer","minimum":1e400}`, `1e400`},
		{"huge exponent", `{"type":"integer","exclusiveMinimum":1e999999}`, `1e1000000`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := schematest.MustCompile(t, test.schema)
			got, err := contain.Sample(s)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Valid(got) {
				t.Errorf("%s is not valid", got)
			}
			if string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestSampleUnsatisfiable(t *testing.T) {
	for _, src := range []string{
		`{"not":{}}`,
		`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`,
		`{"type":"string","minLength":3,"maxLength":2}`,
		`{"type":"string","pattern":"^a","allOf":[{"pattern":"^b"}]}`,
		`{"type":"string","format":"uuid","maxLength":35}`,
		`{"type":"string","format":"uri","not":{"format":"uri-reference"}}`,
		`{"type":"array","items":{"type":"boolean"},"minItems":3,"uniqueItems":true}`,
		`{"type":"array","items":{"enum":[1,2,"x"]},"minItems":4,"uniqueItems":true}`,
		`{"type":"array","items":{"type":"array","items":{"type":"null"},"maxItems":1},"minItems":3,"uniqueItems":true}`,
		`{"type":"array","items":{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false},"minItems":4,"uniqueItems":true}`,
		`{"type":"object","properties":{"a":false},"required":["a"]}`,
		`{"type":"object","required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]}`,
		`{"definitions":{"a":{"type":"array","items":{"$ref":"#/definitions/b"},"minItems":1},"b":{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/definitions/a"}}}},"allOf":[{"$ref":"#/definitions/a"}]}`,
		`{"oneOf":[{"type":"integer"},{"type":"integer","minimum":0}],"minimum":0,"type":"number","not":{"not":{"type":"integer"}}}`,
		`{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":1e-999999}`,
		`{"const":1,"enum":[2,3]}`,
	} {
		got, err := contain.Sample(schematest.MustCompile(t, src))
		if !errors.Is(err, contain.ErrUnsatisfiable) {
			t.Errorf("%s: got %s, %v", src, got, err)
		}
	}
}

func TestSampleUndecided(t *testing.T) {
	var undecided *contain.UndecidedError
	_, err := contain.Sample(schematest.MustCompile(t, `{"type":"array","minItems":1000000000}`))
	if !errors.As(err, &undecided) || undecided.Reason != contain.ReasonWitness {
		t.Errorf("a value of a gigabyte: got %v", err)
	}
}

// TestSampleProperty holds Sample to the validator: what it returns is valid,
// and where it returns none, no value that is drawn is valid.
func TestSampleProperty(t *testing.T) {
	undecided, cases := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := schematest.DrawFamily(t).Need(t, schematest.DrawSchema(3).Draw(t, "schema"))[0]
		cases++
		got, err := contain.Sample(s)
		var doubt *contain.UndecidedError
		switch {
		case err == nil && !s.Valid(got):
			t.Fatalf("%s is no value of %s", got, s.Source())
		case errors.As(err, &doubt):
			undecided++
		case err != nil:
			for range 50 {
				if v := schematest.DrawValue(3).Draw(t, "value"); s.Valid([]byte(v)) {
					t.Fatalf("called unsatisfiable, but accepts %s: %s", v, s.Source())
				}
			}
		}
	})
	t.Logf("%d of %d undecided", undecided, cases)
}

func ExampleSample() {
	s, err := schema.Compile([]byte(`{
		"type": "object",
		"required": ["repo", "number"],
		"properties": {
			"repo": {"type": "string", "pattern": "^[a-z]+/[a-z]+$", "examples": ["acme/site"]},
			"number": {"type": "integer", "minimum": 1},
			"reviewer": {"type": "string", "format": "email"}
		}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := contain.Sample(s)
	fmt.Println(string(value), err)
	// Output: {"repo":"acme/site","number":1,"reviewer":"user@example.com"} <nil>
}
