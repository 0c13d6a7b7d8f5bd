package schematest

import (
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
)

// The pools from which schemas and values are drawn are small, so that the two
// meet often.

func poolNames() []string { return []string{"a", "b", "kind"} }

func poolStrings() []string {
	return []string{"", "a", "b", "ab", "abc", "x1", "2026-01-15T09:30:00Z", "user@example.com", "/path", "a:"}
}

func poolNumbers() []string { return []string{"0", "-1", "1", "2", "3", "0.5", "1.0", "2.5", "1e2"} }

func poolPatterns() []string {
	return []string{"^a", "b$", "^[a-c]*$", "^a.c$", "[0-9]", "^(ab|x)", "^.{2,3}$", "\\bb"}
}

func poolFormats() []string { return []string{"uuid", "email", "uri", "uri-reference", "date-time"} }

// DrawValue draws a JSON value.
func DrawValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		most := 4
		if depth <= 0 {
			most = 2
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom(poolNumbers()).Draw(t, "number")
		case 1:
			b, _ := json.Marshal(rapid.SampledFrom(poolStrings()).Draw(t, "string"))
			return string(b)
		case 2:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
		case 3:
			out := "["
			for i := range rapid.IntRange(0, 3).Draw(t, "items") {
				if i > 0 {
					out += ","
				}
				out += DrawValue(depth-1).Draw(t, "item")
			}
			return out + "]"
		default:
			out, sep := "{", ""
			for _, name := range append(poolNames(), "other") {
				if rapid.Bool().Draw(t, "has") {
					out += fmt.Sprintf("%s%q:%s", sep, name, DrawValue(depth-1).Draw(t, "member"))
					sep = ","
				}
			}
			return out + "}"
		}
	})
}

// Map is a schema under construction.
type Map = map[string]any

// Raw is JSON as it is.
func Raw(s string) json.RawMessage { return json.RawMessage(s) }

// DrawSchema draws a schema, which may refer to the definitions D0 and D1.
func DrawSchema(depth int) *rapid.Generator[Map] {
	return rapid.Custom(func(t *rapid.T) Map {
		s := Map{}
		most := 9
		if depth <= 0 {
			most = 4
		}
		switch rapid.IntRange(0, most).Draw(t, "shape") {
		case 0:
			drawTypes(t, s)
		case 1:
			s["type"] = rapid.SampledFrom([]string{"integer", "number"}).Draw(t, "type")
			drawNumber(t, s)
		case 2:
			s["type"] = "string"
			drawString(t, s)
		case 3:
			drawLiterals(t, s)
		case 4:
			drawNumber(t, s)
			drawString(t, s)
		case 5:
			drawArray(t, s, depth)
		case 6, 7:
			drawObject(t, s, depth)
		case 8:
			key := rapid.SampledFrom([]string{"anyOf", "oneOf", "allOf", "not"}).Draw(t, "combinator")
			if key == "not" {
				s["not"] = DrawSchema(depth-1).Draw(t, "not")
			} else {
				s[key] = rapid.SliceOfN(DrawSchema(depth-1), 1, 3).Draw(t, key)
			}
			if rapid.Bool().Draw(t, "typed") {
				drawTypes(t, s)
			}
		default:
			return Map{"$ref": rapid.SampledFrom([]string{"#/definitions/D0", "#/definitions/D1"}).Draw(t, "ref")}
		}
		return s
	})
}

func drawTypes(t *rapid.T, s Map) {
	all := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
	s["type"] = rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 3, rapid.ID).Draw(t, "types")
}

func drawNumber(t *rapid.T, s Map) {
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		if rapid.IntRange(0, 2).Draw(t, key+"?") == 0 {
			s[key] = Raw(rapid.SampledFrom(poolNumbers()).Draw(t, key))
		}
	}
}

func drawString(t *rapid.T, s Map) {
	if rapid.IntRange(0, 2).Draw(t, "minLength?") == 0 {
		s["minLength"] = rapid.IntRange(0, 3).Draw(t, "minLength")
	}
	if rapid.IntRange(0, 2).Draw(t, "maxLength?") == 0 {
		s["maxLength"] = rapid.IntRange(0, 4).Draw(t, "maxLength")
	}
	if rapid.IntRange(0, 1).Draw(t, "pattern?") == 0 {
		s["pattern"] = rapid.SampledFrom(poolPatterns()).Draw(t, "pattern")
	}
	if rapid.IntRange(0, 4).Draw(t, "format?") == 0 {
		s["format"] = rapid.SampledFrom(poolFormats()).Draw(t, "format")
	}
}

func drawLiterals(t *rapid.T, s Map) {
	if rapid.Bool().Draw(t, "const") {
		s["const"] = Raw(DrawValue(1).Draw(t, "const"))
		return
	}
	distinct := map[string]bool{}
	var values []json.RawMessage
	for _, v := range rapid.SliceOfN(DrawValue(1), 1, 4).Draw(t, "enum") {
		if v == "1.0" {
			v = "1"
		}
		if !distinct[v] {
			distinct[v] = true
			values = append(values, Raw(v))
		}
	}
	s["enum"] = values
}

func drawArray(t *rapid.T, s Map, depth int) {
	if rapid.Bool().Draw(t, "typed") {
		s["type"] = "array"
	}
	if rapid.Bool().Draw(t, "items?") {
		s["items"] = DrawSchema(depth-1).Draw(t, "items")
	}
	if rapid.IntRange(0, 2).Draw(t, "minItems?") == 0 {
		s["minItems"] = rapid.IntRange(0, 3).Draw(t, "minItems")
	}
	if rapid.IntRange(0, 2).Draw(t, "maxItems?") == 0 {
		s["maxItems"] = rapid.IntRange(0, 3).Draw(t, "maxItems")
	}
	if rapid.IntRange(0, 2).Draw(t, "unique?") == 0 {
		s["uniqueItems"] = rapid.Bool().Draw(t, "uniqueItems")
	}
}

func drawObject(t *rapid.T, s Map, depth int) {
	if rapid.Bool().Draw(t, "typed") {
		s["type"] = "object"
	}
	props := Map{}
	var required []string
	for _, name := range poolNames() {
		if rapid.Bool().Draw(t, name) {
			props[name] = DrawSchema(depth-1).Draw(t, "property")
		}
		if rapid.IntRange(0, 2).Draw(t, name+" required") == 0 {
			required = append(required, name)
		}
	}
	if len(props) > 0 {
		s["properties"] = props
	}
	if len(required) > 0 {
		s["required"] = required
	}
	switch rapid.IntRange(0, 3).Draw(t, "additional") {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = DrawSchema(depth-1).Draw(t, "additionalProperties")
	}
}

// Family draws schemas that share their definitions.
type Family struct {
	Definitions Map
}

// DrawFamily draws the definitions D0 and D1.
func DrawFamily(t *rapid.T) Family {
	return Family{Definitions: Map{
		"D0": DrawSchema(2).Draw(t, "D0"),
		"D1": DrawSchema(2).Draw(t, "D1"),
	}}
}

// Compile compiles a schema of the family; it reports false for what the
// engine refuses, which is a $ref loop or a repeated enum value.
func (f Family) Compile(s Map) (*schema.Schema, bool) {
	doc := Map{"allOf": []any{s}, "definitions": f.Definitions}
	src, err := json.Marshal(doc)
	if err != nil {
		return nil, false // maps of strings always encode
	}
	compiled, err := schema.Compile(src)
	return compiled, err == nil
}

// Need compiles several schemas of the family, or skips the case.
func (f Family) Need(t *rapid.T, schemas ...Map) []*schema.Schema {
	var out []*schema.Schema
	for _, s := range schemas {
		c, ok := f.Compile(s)
		if !ok {
			t.Skip("refused at load")
		}
		out = append(out, c)
	}
	return out
}
