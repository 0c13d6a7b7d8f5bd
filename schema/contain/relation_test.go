package contain_test

import (
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// relate writes how the values of two schemas relate: "=" for the same, "<" and
// ">" for fewer and more, "|" for none in common, and "x" for some in common and
// some of its own on either side. Every witness is held to the validator.
func relate(t *testing.T, a, b *schema.Schema) string {
	t.Helper()
	both := schematest.MustCompile(t, `{"allOf":[`+string(a.Source())+`,`+string(b.Source())+`]}`)
	there, back, shared := asked(t, a, b), asked(t, b, a), asked(t, both, schematest.MustCompile(t, `{"not":{}}`))
	switch {
	case there == contain.Undecided || back == contain.Undecided || shared == contain.Undecided:
		return "?"
	case there == contain.Proven && back == contain.Proven:
		return "="
	case there == contain.Proven:
		return "<"
	case back == contain.Proven:
		return ">"
	case shared == contain.Proven:
		return "|"
	}
	return "x"
}

// asked is the answer to whether a is contained in b.
func asked(t *testing.T, a, b *schema.Schema) contain.Answer {
	t.Helper()
	got := contained(a, b)
	if (got.Answer == contain.Refuted) != (got.Witness != nil) || (got.Answer == contain.Undecided) != (got.Reason != "") {
		t.Errorf("%s with witness %s and reason %q", got.Answer, got.Witness, got.Reason)
	}
	if got.Answer == contain.Refuted && (!a.Valid(got.Witness) || b.Valid(got.Witness)) {
		t.Errorf("%s is no witness: %s in %s", got.Witness, a.Source(), b.Source())
	}
	return got.Answer
}

// relation is a pair of schemas and how their values relate.
type relation struct{ a, is, b string }

// related holds pairs to their relation, from both sides, and to what follows
// from it: the complements relate the other way round, and so do arrays,
// members and unions of the two.
func related(t *testing.T, pairs []relation) {
	t.Helper()
	for _, r := range pairs {
		a, b := schematest.MustCompile(t, r.a), schematest.MustCompile(t, r.b)
		if got := relate(t, a, b); got != r.is {
			t.Errorf("%s %s %s: got %s", r.a, r.is, r.b, got)
			continue
		}
		within := map[string]contain.Answer{"=": contain.Proven, "<": contain.Proven, ">": contain.Refuted, "|": contain.Refuted, "x": contain.Refuted}[r.is]
		for _, wrap := range []struct {
			before, after string
			reversed      bool
		}{
			{`{"not":`, `}`, true},
			{`{"not":{"not":`, `}}`, false},
			{`{"type":"array","items":`, `}`, false},
			{`{"type":"array","minItems":2,"maxItems":2,"items":`, `}`, false},
			{`{"type":"object","properties":{"p":`, `}}`, false},
			{`{"type":"object","required":["p"],"properties":{"p":`, `}}`, false},
			{`{"type":"object","additionalProperties":`, `}`, false},
		} {
			x, y := schematest.MustCompile(t, wrap.before+r.a+wrap.after), schematest.MustCompile(t, wrap.before+r.b+wrap.after)
			if wrap.reversed {
				x, y = y, x
			}
			if got := asked(t, x, y); got != within {
				t.Errorf("%s %s %s, but of %s…%s one way is %s", r.a, r.is, r.b, wrap.before, wrap.after, got)
			}
		}
		either := schematest.MustCompile(t, `{"anyOf":[`+r.a+`,`+r.b+`]}`)
		if asked(t, a, either) != contain.Proven || asked(t, b, either) != contain.Proven || asked(t, either, b) != within {
			t.Errorf("%s %s %s, but not so for what matches either", r.a, r.is, r.b)
		}
		inOne := schematest.MustCompile(t, `{"oneOf":[`+r.a+`,`+r.b+`]}`)
		if got := asked(t, either, inOne); (got == contain.Proven) != (r.is == "|") {
			t.Errorf("%s %s %s, but what matches either matches one: %s", r.a, r.is, r.b, got)
		}
	}
}

func TestRelationsOfTypes(t *testing.T) {
	related(t, []relation{
		{`{}`, "=", `{"title":"a","description":"b","default":1,"examples":[2]}`},
		{`{}`, "=", `{"not":{"not":{}}}`},
		{`{}`, ">", `{"type":"null"}`},
		{`{"type":"integer"}`, "<", `{"type":"number"}`},
		{`{"type":["integer","number"]}`, "=", `{"type":"number"}`},
		{`{"type":"integer"}`, "|", `{"type":"number","not":{"type":"integer"}}`},
		{`{"type":"string"}`, "|", `{"type":"null"}`},
		{`{"type":["string","null"]}`, "x", `{"type":["string","array"]}`},
		{`{"type":["string","null"]}`, "=", `{"type":["null","string"]}`},
		{`{"type":["string","null"]}`, "=", `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		{`{"type":["string","null"]}`, "=", `{"oneOf":[{"type":"null"},{"type":"string"}]}`},
		{`{"type":["string","null"]}`, "=", `{"not":{"type":["boolean","number","array","object"]}}`},
		{`{"type":"null"}`, "=", `{"const":null}`},
		{`{"type":"boolean"}`, "=", `{"enum":[false,true]}`},
		{`{"type":"boolean"}`, ">", `{"const":true}`},
		{`{"type":"object"}`, "|", `{"type":"array"}`},
		{`{"type":"array"}`, "<", `{"type":["array","object"]}`},
	})
}

func TestRelationsOfNumbers(t *testing.T) {
	related(t, []relation{
		{`{"type":"number","minimum":1}`, "<", `{"type":"number","minimum":0}`},
		{`{"type":"number","minimum":1}`, ">", `{"type":"number","exclusiveMinimum":1}`},
		{`{"type":"number","minimum":1}`, "=", `{"type":"number","minimum":10e-1}`},
		{`{"type":"number","minimum":1}`, "x", `{"type":"number","maximum":1}`},
		{`{"type":"number","minimum":1}`, "|", `{"type":"number","exclusiveMaximum":1}`},
		{`{"type":"number","exclusiveMinimum":1}`, "|", `{"type":"number","exclusiveMaximum":1}`},
		{`{"type":"number","minimum":1,"maximum":1}`, "=", `{"const":1.0}`},
		{`{"type":"number","minimum":1}`, "=", `{"type":"number","minimum":1,"exclusiveMinimum":0.5}`},
		{`{"type":"number","exclusiveMinimum":1}`, "=", `{"type":"number","minimum":1,"not":{"const":1}}`},
		{`{"type":"integer","minimum":1}`, "=", `{"type":"integer","exclusiveMinimum":0}`},
		{`{"type":"integer","minimum":0.5}`, "=", `{"type":"integer","minimum":1}`},
		{`{"type":"integer","exclusiveMaximum":3}`, "=", `{"type":"integer","maximum":2.999}`},
		{`{"type":"integer","minimum":1,"maximum":3}`, "=", `{"enum":[1,2,3]}`},
		{`{"type":"integer","minimum":1,"maximum":3}`, "<", `{"type":"number","minimum":1,"maximum":3}`},
		{`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":3}`, "=", `{"const":2}`},
		{`{"type":"number","exclusiveMinimum":1,"exclusiveMaximum":3}`, ">", `{"const":2}`},
		{`{"type":"integer","minimum":-1,"maximum":1}`, "x", `{"type":"integer","minimum":0,"maximum":2}`},
		{`{"type":"integer"}`, "=", `{"anyOf":[{"type":"integer","minimum":1},{"type":"integer","maximum":0}]}`},
		{`{"type":"number"}`, ">", `{"anyOf":[{"type":"number","minimum":1},{"type":"number","maximum":0}]}`},
		{`{"type":"integer","minimum":9007199254740992}`, ">", `{"type":"integer","minimum":9007199254740993}`},
		{`{"type":"integer","minimum":1e30}`, "<", `{"type":"integer","exclusiveMinimum":999999999999999999999999999998}`},
		{`{"type":"integer","minimum":1e30}`, "=", `{"type":"integer","exclusiveMinimum":9.99999999999999999999999999999e29}`},
		{`{"type":"number","minimum":1e-400}`, "<", `{"type":"number","exclusiveMinimum":0}`},
		{`{"type":"integer","minimum":1e-400}`, "=", `{"type":"integer","exclusiveMinimum":0}`},
		{`{"type":"number","maximum":1e400}`, ">", `{"type":"number","maximum":1e399}`},
		{`{"minimum":1}`, ">", `{"type":"number","minimum":1}`},
		{`{"minimum":1}`, "=", `{"anyOf":[{"not":{"type":"number"}},{"type":"number","minimum":1}]}`},
		{`{"not":{"minimum":1}}`, "=", `{"type":"number","exclusiveMaximum":1}`},
	})
}

func TestRelationsOfStrings(t *testing.T) {
	related(t, []relation{
		{`{"type":"string","minLength":1}`, "<", `{"type":"string"}`},
		{`{"type":"string","minLength":0}`, "=", `{"type":"string"}`},
		{`{"type":"string","minLength":1}`, "=", `{"type":"string","not":{"const":""}}`},
		{`{"type":"string","maxLength":0}`, "=", `{"const":""}`},
		{`{"type":"string","maxLength":3}`, "x", `{"type":"string","minLength":3}`},
		{`{"type":"string","maxLength":2}`, "|", `{"type":"string","minLength":3}`},
		{`{"type":"string","maxLength":2}`, "=", `{"type":"string","pattern":"^[\\s\\S]{0,2}$"}`},
		{`{"type":"string","maxLength":2}`, ">", `{"type":"string","pattern":"^.{0,2}$"}`},
		{`{"type":"string","pattern":""}`, "=", `{"type":"string"}`},
		{`{"type":"string","pattern":"^$"}`, "=", `{"const":""}`},
		{`{"type":"string","pattern":"^a"}`, "<", `{"type":"string","pattern":"a"}`},
		{`{"type":"string","pattern":"^a"}`, "x", `{"type":"string","pattern":"b$"}`},
		{`{"type":"string","pattern":"^a"}`, "|", `{"type":"string","pattern":"^b"}`},
		{`{"type":"string","pattern":"^a+$"}`, "=", `{"type":"string","pattern":"^aa*$"}`},
		{`{"type":"string","pattern":"^(a|b)$"}`, "=", `{"enum":["b","a"]}`},
		{`{"type":"string","pattern":"^[ab]{1,2}$"}`, "=", `{"enum":["a","b","aa","ab","ba","bb"]}`},
		{`{"type":"string","pattern":"^[ab]{1,2}$"}`, ">", `{"enum":["a","b","aa","ab","ba"]}`},
		{`{"type":"string","pattern":"^(ab)*$"}`, "<", `{"type":"string","pattern":"^[ab]*$"}`},
		{`{"type":"string","pattern":"^a*$","minLength":2,"maxLength":2}`, "=", `{"const":"aa"}`},
		{`{"type":"string","pattern":"^\\d$"}`, "<", `{"type":"string","pattern":"^\\w$"}`},
		{`{"type":"string","pattern":"^\\d$"}`, "|", `{"type":"string","pattern":"^\\D$"}`},
		{`{"type":"string","pattern":"^[^a]$"}`, ">", `{"type":"string","pattern":"^[b-z]$"}`},
		{`{"type":"string","pattern":"\\bx\\b"}`, "<", `{"type":"string","pattern":"x"}`},
		{`{"type":"string","not":{"pattern":"a"}}`, "=", `{"type":"string","pattern":"^[^a]*$"}`},
		{`{"type":"string","allOf":[{"pattern":"a"},{"pattern":"b"}]}`, "=", `{"type":"string","pattern":"a[\\s\\S]*b|b[\\s\\S]*a"}`},
		{`{"pattern":"^a"}`, ">", `{"type":"string","pattern":"^a"}`},
		{`{"const":"\u0061"}`, "=", `{"const":"a"}`},
	})
}

func TestRelationsOfFormats(t *testing.T) {
	related(t, []relation{
		{`{"type":"string","format":"uri"}`, "<", `{"type":"string","format":"uri-reference"}`},
		{`{"type":"string","format":"uri"}`, "<", `{"type":"string","minLength":2}`},
		{`{"type":"string","format":"uri"}`, "x", `{"type":"string","maxLength":2}`},
		{`{"type":"string","format":"uri"}`, "<", `{"type":"string","pattern":"^[A-Za-z][A-Za-z0-9+.-]*:"}`},
		{`{"type":"string","format":"uri"}`, "|", `{"type":"string","format":"uuid"}`},
		{`{"type":"string","format":"uri"}`, "|", `{"type":"string","pattern":" "}`},
		{`{"type":"string","format":"uuid"}`, "<", `{"type":"string","format":"uri-reference"}`},
		{`{"type":"string","format":"uuid"}`, "<", `{"type":"string","minLength":36,"maxLength":36}`},
		{`{"type":"string","format":"uuid"}`, "=", `{"type":"string","pattern":"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"}`},
		{`{"type":"string","format":"uuid"}`, ">", `{"const":"00000000-0000-0000-0000-000000000000"}`},
		{`{"type":"string","format":"uuid"}`, "|", `{"type":"string","format":"email"}`},
		{`{"type":"string","format":"uuid"}`, "|", `{"type":"string","format":"date-time"}`},
		{`{"type":"string","format":"email"}`, "<", `{"type":"string","pattern":"@"}`},
		{`{"type":"string","format":"email"}`, "<", `{"type":"string","minLength":3}`},
		{`{"type":"string","format":"email"}`, "x", `{"type":"string","pattern":"^[a-z]+@[a-z]+$"}`},
		{`{"type":"string","format":"email"}`, ">", `{"type":"string","pattern":"^[a-z]{1,9}@[a-z]{1,9}$"}`},
		{`{"type":"string","format":"date-time"}`, "<", `{"type":"string","minLength":20}`},
		{`{"type":"string","format":"date-time"}`, "|", `{"type":"string","maxLength":19}`},
		{`{"type":"string","format":"date-time"}`, "|", `{"type":"string","pattern":"^....-02-30"}`},
		{`{"type":"string","format":"date-time"}`, ">", `{"type":"string","pattern":"^2024-02-29T00:00:00Z$"}`},
		{`{"format":"uuid"}`, ">", `{"type":"string","format":"uuid"}`},
	})
}

func TestRelationsOfLiterals(t *testing.T) {
	related(t, []relation{
		{`{"const":1}`, "=", `{"enum":[1.0]}`},
		{`{"const":1}`, "<", `{"enum":[1,2]}`},
		{`{"const":1}`, "|", `{"const":"1"}`},
		{`{"const":0}`, "|", `{"const":false}`},
		{`{"const":0}`, "=", `{"const":-0.0e5}`},
		{`{"enum":[1,2]}`, "x", `{"enum":[2,3]}`},
		{`{"enum":[1,2]}`, "|", `{"enum":[3,4]}`},
		{`{"enum":[1,2]}`, "=", `{"enum":[2,1]}`},
		{`{"enum":[1,2,3],"not":{"const":3}}`, "=", `{"enum":[1,2]}`},
		{`{"enum":[1,"a",null],"type":"string"}`, "=", `{"const":"a"}`},
		{`{"enum":[1,"a"]}`, "x", `{"type":"string"}`},
		{`{"enum":[1,5,9],"minimum":4}`, "=", `{"enum":[5,9]}`},
		{`{"const":[1,2]}`, "|", `{"const":[2,1]}`},
		{`{"const":[]}`, "=", `{"type":"array","maxItems":0}`},
		{`{"const":{}}`, "=", `{"type":"object","additionalProperties":false}`},
		{`{"const":{"a":1,"b":2}}`, "=", `{"const":{"b":2.0,"a":1}}`},
		{`{"const":{"a":1}}`, "=", `{"type":"object","required":["a"],"properties":{"a":{"const":1}},"additionalProperties":false}`},
		{`{"const":{"a":1}}`, "<", `{"type":"object","properties":{"a":{"const":1}},"additionalProperties":false}`},
		{`{"const":[1]}`, "=", `{"type":"array","items":{"const":1},"minItems":1,"maxItems":1}`},
		{`{"not":{"const":1}}`, "x", `{"type":"integer"}`},
		{`{"not":{"enum":[1,2]}}`, "<", `{"not":{"const":1}}`},
	})
}

func TestRelationsOfArrays(t *testing.T) {
	related(t, []relation{
		{`{"type":"array","minItems":1}`, "<", `{"type":"array"}`},
		{`{"type":"array","minItems":2}`, "|", `{"type":"array","maxItems":1}`},
		{`{"type":"array","minItems":1}`, "x", `{"type":"array","maxItems":1}`},
		{`{"type":"array","minItems":1}`, "=", `{"type":"array","not":{"const":[]}}`},
		{`{"type":"array","items":{"type":"integer"}}`, "<", `{"type":"array","items":{"type":"number"}}`},
		{`{"type":"array","items":{"type":"integer"}}`, "x", `{"type":"array","items":{"type":"string"}}`},
		{`{"type":"array","items":{"type":"integer"},"minItems":1}`, "|", `{"type":"array","items":{"type":"string"}}`},
		{`{"type":"array","items":false}`, "=", `{"const":[]}`},
		{`{"type":"array","items":{}}`, "=", `{"type":"array"}`},
		{`{"type":"array","items":{"allOf":[{"type":"null"},{"type":"string"}]}}`, "=", `{"type":"array","maxItems":0}`},
		{`{"type":"array","items":{"anyOf":[{"type":"null"},{"type":"string"}]}}`, ">", `{"anyOf":[{"type":"array","items":{"type":"null"}},{"type":"array","items":{"type":"string"}}]}`},
		{`{"type":"array","maxItems":1,"items":{"enum":[1,2]}}`, "=", `{"enum":[[],[1],[2]]}`},
		{`{"type":"array","uniqueItems":true}`, "<", `{"type":"array"}`},
		{`{"type":"array","uniqueItems":true,"maxItems":1}`, "=", `{"type":"array","maxItems":1}`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"null"}}`, "=", `{"enum":[[],[null]]}`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"boolean"}}`, "=", `{"enum":[[],[true],[false],[true,false],[false,true]]}`},
		{`{"type":"array","uniqueItems":true,"items":{"enum":[1,2]},"minItems":2}`, "=", `{"enum":[[1,2],[2,1]]}`},
		{`{"type":"array","items":{"type":"array","items":{"type":"null"}}}`, "<", `{"type":"array","items":{"type":"array"}}`},
		{`{"not":{"items":{"type":"integer"}}}`, "<", `{"type":"array","minItems":1}`},
		{`{"not":{"uniqueItems":true}}`, "<", `{"type":"array","minItems":2}`},
	})
}

func TestRelationsOfObjects(t *testing.T) {
	related(t, []relation{
		{`{"type":"object","required":["a","b"]}`, "<", `{"type":"object","required":["a"]}`},
		{`{"type":"object","required":["a"]}`, "x", `{"type":"object","required":["b"]}`},
		{`{"type":"object","required":["a"]}`, "|", `{"type":"object","properties":{"a":false}}`},
		{`{"type":"object","required":["a","b"]}`, "=", `{"allOf":[{"type":"object","required":["b"]},{"type":"object","required":["a"]}]}`},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, "<", `{"type":"object","properties":{"a":{"type":"number"}}}`},
		{`{"type":"object","properties":{"a":{}}}`, "=", `{"type":"object"}`},
		{`{"type":"object","properties":{"a":{"type":"null"}}}`, "x", `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{`{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]}`, "|", `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, "<", `{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}`},
		{`{"type":"object","properties":{"a":{},"b":false},"additionalProperties":false}`, "=", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`},
		{`{"type":"object","additionalProperties":{"type":"null"}}`, "<", `{"type":"object","properties":{"a":{"type":"null"}}}`},
		{`{"type":"object","additionalProperties":{"type":"null"}}`, "x", `{"type":"object","required":["a"]}`},
		{`{"type":"object","additionalProperties":{"type":"null"}}`, "=", `{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":{"type":"null"}}`},
		{`{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}`, "=", `{"enum":[{},{"a":true},{"a":false}]}`},
		{`{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`, "=", `{"enum":[{"a":true},{"a":false}]}`},
		{`{"type":"object","not":{"required":["a"]}}`, "=", `{"type":"object","properties":{"a":false}}`},
		{`{"type":"object","required":["a"],"not":{"properties":{"a":{"type":"null"}}}}`, "=", `{"type":"object","required":["a"],"properties":{"a":{"not":{"type":"null"}}}}`},
		{`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}`, ">", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`},
		{`{"type":"object","properties":{"a":{"properties":{"b":{"minimum":1}}}}}`, "<", `{"type":"object","properties":{"a":{"properties":{"b":{"minimum":0}}}}}`},
		{`{"required":["a"]}`, ">", `{"type":"object","required":["a"]}`},
	})
}

func TestRelationsOfUnions(t *testing.T) {
	const (
		circle = `{"type":"object","properties":{"k":{"const":"circle"},"r":{"type":"number","minimum":0}},"required":["k","r"]}`
		square = `{"type":"object","properties":{"k":{"const":"square"},"w":{"type":"number"}},"required":["k","w"]}`
		whole  = `{"type":"object","properties":{"k":{"const":"circle"},"r":{"type":"integer","minimum":0}},"required":["k","r"]}`
	)
	related(t, []relation{
		{`{"oneOf":[` + circle + `,` + square + `]}`, "=", `{"anyOf":[` + square + `,` + circle + `]}`},
		{`{"oneOf":[` + circle + `]}`, "<", `{"oneOf":[` + circle + `,` + square + `]}`},
		{`{"oneOf":[` + whole + `,` + square + `]}`, "<", `{"oneOf":[` + circle + `,` + square + `]}`},
		{`{"oneOf":[` + whole + `,` + circle + `]}`, "<", circle},
		{`{"oneOf":[` + whole + `,` + circle + `]}`, "|", whole},
		{`{"anyOf":[` + whole + `,` + circle + `]}`, "=", circle},
		{circle, "|", square},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, "<", `{"anyOf":[{"type":"integer"},{"minimum":2}]}`},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, "=", `{"type":"number","not":{"type":"integer"}}`},
		{`{"anyOf":[{"type":"integer"},{"type":"number"}]}`, "=", `{"type":"number"}`},
		{`{"allOf":[{"type":"integer"},{"type":"number"}]}`, "=", `{"type":"integer"}`},
		{`{"anyOf":[{"type":"null"},false]}`, "=", `{"type":"null"}`},
		{`{"allOf":[{"type":"null"},true]}`, "=", `{"type":"null"}`},
		{`{"not":{"allOf":[{"type":"string"},{"minLength":2}]}}`, "=", `{"anyOf":[{"not":{"type":"string"}},{"not":{"minLength":2}}]}`},
		{`{"anyOf":[{"const":1},{"const":2},{"const":3}]}`, "=", `{"enum":[3,2,1]}`},
		{`{"oneOf":[{"enum":[1,2]},{"enum":[2,3]}]}`, "=", `{"enum":[1,3]}`},
		{`{"oneOf":[{"enum":[1,2]},{"enum":[2,3]},{"enum":[2,4]}]}`, "=", `{"enum":[1,3,4]}`},
		{`{"type":"integer","anyOf":[{"maximum":0},{"minimum":10}]}`, "<", `{"type":"integer","not":{"const":5}}`},
	})
}

// TestRelationsOfRecursion compares schemas that contain themselves. They cannot
// be wrapped, since # is the root, so that each is asked both ways only.
func TestRelationsOfRecursion(t *testing.T) {
	def := func(name, defs string) string {
		return `{"$ref":"#/definitions/` + name + `","definitions":` + defs + `}`
	}
	list := func(value, more string) string {
		return def("l", `{"l":{"type":"object","properties":{"v":`+value+`,"next":{"$ref":"#/definitions/l"}},"required":["v"]`+more+`}}`)
	}
	tree := func(leaf, more string) string {
		return def("t", `{"t":{"anyOf":[`+leaf+`,{"type":"array","items":{"$ref":"#/definitions/t"}`+more+`}]}}`)
	}
	const parity = `{"even":{"anyOf":[{"const":[]},{"type":"array","minItems":1,"maxItems":1,"items":{"$ref":"#/definitions/odd"}}]},"odd":{"type":"array","minItems":1,"maxItems":1,"items":{"$ref":"#/definitions/even"}}}`
	chain := tree(`false`, `,"maxItems":1`)
	for _, r := range []struct {
		a         string
		ab, ba    contain.Answer
		b, reason string
	}{
		{list(`{"type":"integer"}`, ""), contain.Proven, contain.Refuted, list(`{"type":"number"}`, ""), "a narrower value"},
		{list(`{"type":"integer"}`, ""), contain.Proven, contain.Proven, list(`{"type":"number","not":{"not":{"type":"integer"}}}`, ""), "other words"},
		{list(`{"type":"integer"}`, `,"additionalProperties":false`), contain.Proven, contain.Refuted, list(`{"type":"integer"}`, ""), "closed"},
		{list(`{"type":"integer"}`, ""), contain.Refuted, contain.Refuted, list(`{"type":"string"}`, ""), "other values"},
		{list(`{"type":"integer"}`, ""), contain.Refuted, contain.Refuted, tree(`{"type":"integer"}`, ""), "other shapes"},
		{list(`{}`, ""), contain.Proven, contain.Refuted, `{"type":"object","required":["v"],"properties":{"next":{"type":"object"}}}`, "unrolled once"},
		{list(`{}`, ""), contain.Proven, contain.Refuted, `{"type":"object","properties":{"next":{"properties":{"next":{"type":"object","required":["v"]}}}}}`, "unrolled twice"},
		{tree(`{"type":"integer"}`, ""), contain.Proven, contain.Refuted, tree(`{"type":["integer","null"]}`, ""), "more leaves"},
		{tree(`{"type":"integer"}`, `,"minItems":1`), contain.Proven, contain.Refuted, tree(`{"type":"integer"}`, ""), "no empty arrays"},
		{tree(`{"type":"integer"}`, `,"maxItems":2`), contain.Proven, contain.Refuted, tree(`{"type":"integer"}`, `,"maxItems":3`), "fewer branches"},
		{tree(`false`, ""), contain.Proven, contain.Refuted, tree(`{"type":"null"}`, ""), "no leaves"},
		{tree(`{"type":"null"}`, ""), contain.Proven, contain.Proven, tree(`{"const":null}`, ""), "the same leaf"},
		{def("even", parity), contain.Proven, contain.Refuted, chain, "even chains are chains"},
		{def("odd", parity), contain.Proven, contain.Refuted, chain, "odd chains are chains"},
		{def("even", parity), contain.Refuted, contain.Refuted, def("odd", parity), "even and odd"},
		{`{"anyOf":[{"$ref":"#/definitions/even"},{"$ref":"#/definitions/odd"}],"definitions":` + parity + `}`, contain.Proven, contain.Proven, chain, "even or odd"},
		{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, contain.Proven, contain.Refuted, `{"type":"null"}`, "without end, without value"},
		{`{"type":"array","items":{"$ref":"#"},"minItems":1}`, contain.Proven, contain.Proven, `{"not":{}}`, "without end in an array"},
		{`{"type":"array","items":{"$ref":"#"}}`, contain.Proven, contain.Refuted, `{"type":"array","items":{"type":"array"}}`, "arrays all the way down"},
		{`{"type":"array","items":{"$ref":"#"}}`, contain.Proven, contain.Proven, `{"type":"array","items":{"type":"array","items":{"$ref":"#"}}}`, "two levels at once"},
		{`{"additionalProperties":{"$ref":"#"},"type":"object"}`, contain.Proven, contain.Refuted, `{"additionalProperties":{"type":"object"}}`, "objects all the way down"},
	} {
		a, b := schematest.MustCompile(t, r.a), schematest.MustCompile(t, r.b)
		if there, back := asked(t, a, b), asked(t, b, a); there != r.ab || back != r.ba {
			t.Errorf("%s: %s and %s, want %s and %s", r.reason, there, back, r.ab, r.ba)
		}
	}
}

// TestWitnesses has questions with one smallest or only witness.
func TestWitnesses(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{`{"enum":[1,2,3]}`, `{"enum":[1,3]}`, `2`},
		{`{"type":"boolean"}`, `{"const":true}`, `false`},
		{`{"type":["null","string"]}`, `{"type":"string"}`, `null`},
		{`{"type":"integer","minimum":0,"maximum":10}`, `{"maximum":9}`, `10`},
		{`{"type":"integer","minimum":0,"maximum":10}`, `{"exclusiveMinimum":0}`, `0`},
		{`{"type":"integer","minimum":0,"maximum":10}`, `{"not":{"const":7}}`, `7`},
		{`{"type":"string","pattern":"^[ab]$"}`, `{"const":"a"}`, `"b"`},
		{`{"type":"string","maxLength":0}`, `{"minLength":1}`, `""`},
		{`{"type":"array","items":{"type":"null"},"maxItems":2}`, `{"maxItems":1}`, `[null,null]`},
		{`{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":1}`, `{"items":{"const":true}}`, `[false]`},
		{`{"type":"array","items":{"type":"null"},"maxItems":2}`, `{"uniqueItems":true}`, `[null,null]`},
		{`{"type":"array","maxItems":0}`, `{"minItems":1}`, `[]`},
		{`{"type":"object","additionalProperties":false}`, `{"required":["a"]}`, `{}`},
		{`{"type":"object","properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":false}`, `{"properties":{"a":false}}`, `{"a":null}`},
		{`{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`, `{"properties":{"a":{"const":false}}}`, `{"a":true}`},
		{`{"oneOf":[{"const":1},{"const":"x"}]}`, `{"oneOf":[{"const":1},{"const":"y"}]}`, `"x"`},
		{`{"const":9007199254740993}`, `{"const":9007199254740992}`, `9007199254740993`},
		{`{"const":{"a":[1,{"b":null}]}}`, `{"type":"array"}`, `{"a":[1,{"b":null}]}`},
	} {
		if got := contained(schematest.MustCompile(t, c.a), schematest.MustCompile(t, c.b)); string(got.Witness) != c.want {
			t.Errorf("%s in %s: witness %s, want %s", c.a, c.b, got.Witness, c.want)
		}
	}
}
