package model_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/schema"
)

// drawSchema draws a JSON Schema that is nested at most depth levels deep. The names
// and the values are few, so that parts meet. References are drawn only below a
// member or an element: elsewhere they could lead back to themselves.
func drawSchema(t *rapid.T, depth int, refs bool) string {
	if refs && rapid.IntRange(0, 5).Draw(t, "ref") == 0 {
		return `{"$ref":"` + rapid.SampledFrom([]string{"#", "#/definitions/d", "#/definitions/e"}).Draw(t, "target") + `"}`
	}
	if rapid.IntRange(0, 11).Draw(t, "boolean") == 0 {
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "accepts")
	}
	var keys []string
	some := func(keyword string, draw func() string) {
		if rapid.IntRange(0, 3).Draw(t, keyword) == 0 {
			keys = append(keys, `"`+keyword+`":`+draw())
		}
	}
	list := func(most int, draw func() string) string {
		parts := make([]string, rapid.IntRange(1, most).Draw(t, "length"))
		for i := range parts {
			parts[i] = draw()
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	sub := func(refs bool) func() string { return func() string { return drawSchema(t, depth-1, refs) } }
	values := []string{`null`, `true`, `false`, `1`, `2.5`, `1e2`, `"a"`, `"b"`, `["a"]`, `["a",1]`, `[]`, `{"a":1}`, `{}`}
	some("type", func() string {
		types := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"null", "boolean", "integer", "number", "string", "array", "object"}), 1, 3, rapid.ID[string])
		data, err := json.Marshal(types.Draw(t, "types"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	})
	some("enum", func() string {
		return "[" + strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 4, rapid.ID[string]).Draw(t, "values"), ",") + "]"
	})
	some("const", func() string { return rapid.SampledFrom(values).Draw(t, "value") })
	some("required", func() string {
		return rapid.SampledFrom([]string{`["a"]`, `["b"]`, `["a","b"]`, `["c"]`}).Draw(t, "names")
	})
	if depth > 0 {
		some("properties", func() string { return `{"a":` + sub(true)() + `,"b":` + sub(true)() + `}` })
		some("additionalProperties", sub(true))
		some("items", sub(true))
		some("allOf", func() string { return list(2, sub(false)) })
		some("anyOf", func() string { return list(3, sub(false)) })
		some("oneOf", func() string { return list(3, sub(false)) })
		some("not", sub(false))
	}
	return "{" + strings.Join(keys, ",") + "}"
}

// drawValue draws JSON of the kind that schemas of drawSchema judge.
func drawValue(t *rapid.T, depth int) any {
	scalars := []any{nil, true, false, json.Number("1"), json.Number("2.5"), json.Number("100"), json.Number("-7"), "a", "b", "other"}
	switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		array := make([]any, rapid.IntRange(0, 2).Draw(t, "length"))
		for i := range array {
			array[i] = drawValue(t, depth-1)
		}
		return array
	case kind == 1 && depth > 0:
		object := map[string]any{}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID[string]).Draw(t, "names") {
			object[name] = drawValue(t, depth-1)
		}
		return object
	}
	return rapid.SampledFrom(scalars).Draw(t, "scalar")
}

// accepts reports whether v is a value of a type, as the comments of [model.Type]
// have it.
func accepts(t *model.Type, v any) bool {
	of := func(p *model.Type) bool { return accepts(p, v) }
	switch t.Kind {
	case model.Any:
		return true
	case model.Null:
		return v == nil
	case model.Ref:
		return of(t.Named.Type)
	case model.Union:
		return slices.ContainsFunc(t.Of, of)
	case model.Intersection:
		return of(t.Flat) && !slices.ContainsFunc(t.Of, func(p *model.Type) bool { return !of(p) })
	case model.Boolean:
		_, ok := v.(bool)
		return ok
	case model.String:
		_, ok := v.(string)
		return ok
	case model.Integer, model.Number:
		n, ok := v.(json.Number)
		return ok && (t.Kind == model.Number || number(string(n)).IsInt())
	case model.Enum:
		return slices.ContainsFunc(t.Values, func(text string) bool { return isLiteral(t.Base, text, v) })
	case model.Array:
		array, ok := v.([]any)
		if t.Tuple != nil && len(array) != len(t.Tuple) {
			return false
		}
		for i, elem := range t.Tuple {
			if !accepts(elem, array[i]) {
				return false
			}
		}
		return ok && !slices.ContainsFunc(array, func(e any) bool { return !accepts(t.Elem, e) })
	case model.Object:
		object, ok := v.(map[string]any)
		return ok && acceptsMembers(t, object)
	}
	return false
}

func acceptsMembers(t *model.Type, object map[string]any) bool {
	for _, m := range t.Members {
		if v, there := object[m.Name]; there && !accepts(m.Type, v) || !there && m.Required {
			return false
		}
	}
	for name, v := range object {
		declared := slices.ContainsFunc(t.Members, func(m model.Member) bool { return m.Name == name })
		if !declared && (t.Elem == nil || !accepts(t.Elem, v)) {
			return false
		}
	}
	return true
}

func number(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

// isLiteral reports whether v is the value of an enum that text stands for.
func isLiteral(base model.Kind, text string, v any) bool {
	switch v := v.(type) {
	case string:
		return base == model.String && v == text
	case bool:
		return base == model.Boolean && fmt.Sprint(v) == text
	case json.Number:
		return (base == model.Integer || base == model.Number) && number(string(v)).Cmp(number(text)) == 0
	}
	return false
}

// build makes a model of a request, and compiles its schema; the error is for one
// that is refused.
func build(source string) (*model.API, *schema.Schema, error) {
	compiled, err := schema.Compile([]byte(source))
	if err != nil {
		return nil, nil, err
	}
	file := `{"version":1,"agent":"agent://agent","transports":[{"kind":"memory","topics":{"requests":"t"}}],` +
		`"capabilities":[{"name":"x","inputSchema":` + source + `}]}`
	doc, err := capability.Parse("capabilities.json", []byte(file), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		return nil, nil, err
	}
	api, err := model.New(doc)
	return api, compiled, err
}

// drawModel draws a schema with definitions, and builds its model.
func drawModel(t *rapid.T) (source string, api *model.API, compiled *schema.Schema) {
	root := strings.TrimSuffix(drawSchema(t, 3, false), "}")
	if !strings.HasPrefix(root, "{") {
		t.Skip("a root is an object")
	}
	if root != "{" {
		root += ","
	}
	source = root + `"definitions":{"d":` + drawSchema(t, 2, false) + `,"e":` + drawSchema(t, 1, false) + `}}`
	api, compiled, err := build(source)
	if err != nil {
		t.Skip(err) // no value passes it, for one
	}
	return source, api, compiled
}

// Every value that a schema accepts is a value of its type: generated code must not
// refuse what agentd lets through.
func TestTypesAcceptWhatSchemasDo(t *testing.T) {
	judged := 0
	rapid.Check(t, func(t *rapid.T) {
		source, api, compiled := drawModel(t)
		root := api.Capabilities[0].Request.Type
		rest, nullable := root.Nullable()
		for range 20 {
			v := drawValue(t, 3)
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if !compiled.Valid(data) {
				continue
			}
			judged++
			if !accepts(root, v) {
				t.Fatalf("%s passes %s, and is no %s", data, source, show(root))
			}
			if v != nil && !accepts(rest, v) {
				t.Fatalf("without null, %s is no %s", data, show(rest))
			}
			if v == nil && !nullable && root.Flatten().Kind != model.Any && root.Flatten().Kind != model.Null {
				t.Fatalf("null passes %s, and %s is not nullable", source, show(root))
			}
		}
	})
	if judged < 50 {
		t.Errorf("only %d values passed their schema: the test proves little", judged)
	}
}

// What emitters rely on holds for every type: names are unique, and parts are what
// the comments of [model.Type] promise.
func TestTypesAreWellFormed(t *testing.T) {
	isName := regexp.MustCompile(`^[A-Z][A-Za-z0-9]*(_[0-9a-f]+[A-Za-z0-9]*)*$`)
	rapid.Check(t, func(t *rapid.T) {
		source, api, _ := drawModel(t)
		names := map[string]*model.Type{} // by name, in lower case
		claim := func(name string, of *model.Type) {
			if other, taken := names[strings.ToLower(name)]; !isName.MatchString(name) || taken && other != of {
				t.Fatalf("%s: two types are named %q, or it is no name", source, name)
			}
			names[strings.ToLower(name)] = of
		}
		seen := map[*model.Type]bool{}
		var walk func(*model.Type)
		walk = func(p *model.Type) {
			if p == nil || seen[p] {
				return
			}
			seen[p] = true
			checkParts(t, source, p)
			for _, m := range p.Members {
				walk(m.Type)
			}
			for _, part := range p.Of {
				walk(part)
			}
			walk(p.Elem)
			walk(p.Flat)
		}
		for _, n := range api.Types {
			claim(n.Name, n.Type)
			walk(n.Type)
		}
	})
}

// checkParts checks one type, and not those inside it.
func checkParts(t *rapid.T, source string, p *model.Type) {
	fail := func(why string) { t.Fatalf("%s: %s: %s", source, show(p), why) }
	switch p.Kind {
	case model.Union:
		if len(p.Of) < 2 {
			fail("a union of fewer than two")
		}
		for _, part := range p.Of {
			if part.Kind == model.Union || part.Kind == model.Any || part.Flatten().Kind == model.Never {
				fail("a part that says nothing")
			}
		}
	case model.Intersection:
		if len(p.Of) < 2 || p.Flat == nil || p.Flatten().Kind == model.Intersection {
			fail("an intersection that was not worked out")
		}
	case model.Enum:
		values := slices.Clone(p.Values)
		slices.Sort(values)
		if len(values) == 0 || len(slices.Compact(values)) != len(p.Values) {
			fail("an enum without values, or with one twice")
		}
	case model.Array:
		if p.Elem == nil {
			fail("an array without elements")
		}
	case model.Object:
		for i, m := range p.Members {
			if slices.ContainsFunc(p.Members[:i], func(o model.Member) bool { return o.Name == m.Name }) {
				fail("a member twice")
			}
			if m.Required && m.Type.Kind == model.Never {
				fail("a required member that cannot be there")
			}
		}
	}
}
