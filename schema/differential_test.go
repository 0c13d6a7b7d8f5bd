package schema_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/agentd/agentd/schema"
)

// draw makes schemas and documents out of bytes, so that a fuzzer can steer
// them. It stays where gojsonschema is known to follow draft-07: small numbers
// and no negative zero, no formats, patterns that mean the same in every
// syntax, and no recursion through combinators.
type draw struct {
	bytes []byte
	depth int
}

// pick returns a number below n; 0 once the bytes are used up.
func (d *draw) pick(n int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % n
}

func (d *draw) from(list ...string) string { return list[d.pick(len(list))] }

// within goes one level deeper, or returns flat where that is too deep.
func (d *draw) within(flat string, deep func() string) string {
	if d.depth >= 4 {
		return flat
	}
	d.depth++
	defer func() { d.depth-- }()
	return deep()
}

func (d *draw) name() string { return d.from("a", "b", "c", "kind", "longer name", "é") }

func (d *draw) number() string {
	return d.from("0", "1", "2", "3", "-1", "1.0", "0.5", "1.5", "1e1", "10", "12.25", "-2.50", "100")
}

func (d *draw) text() string {
	return d.from(`""`, `"a"`, `"b"`, `"ab"`, `"abc"`, `"é"`, `"日本"`, `"😀"`, `"a1"`, `"x y"`, `"\n"`, `"\u0061"`)
}

// value draws any document.
func (d *draw) value() string {
	switch d.pick(9) {
	case 0:
		return "null"
	case 1:
		return d.from("true", "false")
	case 2, 3:
		return d.number()
	case 4, 5:
		return d.text()
	case 6, 7:
		return d.within("{}", func() string { return d.members(d.value) })
	default:
		return d.within("[]", func() string { return d.elements(d.value) })
	}
}

func (d *draw) elements(item func() string) string {
	parts := make([]string, d.pick(4))
	for i := range parts {
		parts[i] = item()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// members draws an object whose names differ.
func (d *draw) members(value func() string) string {
	var parts []string
	used := map[string]bool{}
	for range d.pick(5) {
		name := d.name()
		if !used[name] {
			used[name] = true
			parts = append(parts, strconv.Quote(name)+":"+value())
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// schema draws a schema. root says that it must be an object without $ref.
func (d *draw) schema(root bool) string {
	if !root {
		switch d.pick(12) {
		case 0:
			return d.from("true", "false")
		case 1:
			return fmt.Sprintf(`{"$ref":"#/definitions/%s"}`, d.from("x", "y", "list"))
		}
	}
	var parts []string
	used := map[string]bool{}
	for range 1 + d.pick(4) {
		keyword, value := d.keyword()
		if !used[keyword] && value != "" {
			used[keyword] = true
			parts = append(parts, `"`+keyword+`":`+value)
		}
	}
	if root {
		parts = append(parts, `"definitions":{"x":{"type":["string","null"],"maxLength":2},"y":{"minimum":1,"not":{"const":2}},`+
			`"list":{"type":["array","integer"],"items":{"$ref":"#/definitions/list"}}}`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (d *draw) keyword() (name, value string) {
	sub := func() string { return d.within("{}", func() string { return d.schema(false) }) }
	subs := func() string {
		text := d.elements(sub)
		if text == "[]" {
			return "[" + sub() + "]"
		}
		return text
	}
	switch d.pick(19) {
	case 0, 1:
		if d.pick(2) == 0 {
			return "type", d.from(`"object"`, `"array"`, `"string"`, `"integer"`, `"number"`, `"boolean"`, `"null"`)
		}
		return "type", d.from(`["object","null"]`, `["string","integer"]`, `["array","boolean"]`, `["number","string","object"]`, `["integer","number"]`)
	case 2:
		return "enum", d.enum()
	case 3:
		return "const", d.value()
	case 4, 5:
		return "properties", d.members(sub)
	case 6:
		return "required", d.from(`["a"]`, `["b","a"]`, `["kind"]`, `[]`, `["é"]`)
	case 7:
		return "additionalProperties", sub()
	case 8, 9:
		return "items", sub()
	case 10:
		if d.pick(2) == 0 { // it refuses a minimum above the maximum
			return d.from("minItems", "minLength"), d.from("0", "1")
		}
		return d.from("maxItems", "maxLength"), d.from("1", "2", "3")
	case 11:
		return "uniqueItems", d.from("true", "false")
	case 12:
		return d.from("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), d.number()
	case 13:
		return "pattern", d.from(`"^a"`, `"b$"`, `"^[a-c]*$"`, `"[0-9]"`, `"a|é"`, `"^(a|b)+$"`)
	case 14, 15:
		return "oneOf", d.within("", subs)
	case 16:
		return "anyOf", d.within("", subs)
	case 17:
		return "allOf", d.within("", subs)
	default:
		return "not", d.within("", sub)
	}
}

// enum draws values that differ.
func (d *draw) enum() string {
	var parts []string
	used := map[string]bool{}
	for range 1 + d.pick(4) {
		text := d.value()
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return ""
		}
		key, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		if !used[string(key)] {
			used[string(key)] = true
			parts = append(parts, text)
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// compare judges documents drawn from data by both engines, and returns how
// many are valid.
func compare(t *testing.T, data []byte) (valid int) {
	t.Helper()
	d := &draw{bytes: data}
	src := d.schema(true)
	ours, err := schema.Compile([]byte(src))
	if err != nil {
		t.Fatalf("Compile(%s): %v", src, err)
	}
	loader := gojsonschema.NewSchemaLoader()
	loader.Draft, loader.AutoDetect = gojsonschema.Draft7, false
	theirs, err := loader.Compile(gojsonschema.NewStringLoader(src))
	if err != nil {
		t.Fatalf("gojsonschema refuses %s: %v", src, err)
	}
	for range 4 {
		doc := d.value()
		result, err := theirs.Validate(gojsonschema.NewStringLoader(doc))
		if err != nil {
			t.Fatalf("gojsonschema on %s: %v", doc, err)
		}
		if ours.Valid([]byte(doc)) != result.Valid() {
			t.Fatalf("schema %s\ndocument %s\nours %v %v\ngojsonschema %v %v",
				src, doc, ours.Valid([]byte(doc)), ours.Validate([]byte(doc)), result.Valid(), result.Errors())
		}
		checkConsistent(t, ours, []byte(doc))
		if result.Valid() {
			valid++
		}
	}
	return valid
}

func TestAgreesWithGojsonschema(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 20261121))
			const rounds = 1000
			valid := 0
			for range rounds {
				data := make([]byte, 20+random.IntN(200))
				for i := range data {
					data[i] = byte(random.Uint32())
				}
				valid += compare(t, data)
			}
			if valid < rounds || valid > 3*rounds {
				t.Errorf("%d of %d documents are valid: the draw has become one-sided", valid, 4*rounds)
			}
		})
	}
}

func FuzzAgreesWithGojsonschema(f *testing.F) {
	f.Add([]byte("\x05\x04\x00\x02\x01\x03"))
	f.Add([]byte{14, 3, 0, 1, 5, 3, 2, 8, 8, 1, 0, 4, 4, 7, 7})
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, data) })
}
