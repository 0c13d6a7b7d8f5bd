package jsontest

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Value draws a value out of a small world, so that equal ones are common.
func Value(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "word")
	case 1:
		return rapid.SampledFrom([]any{json.Number("0"), json.Number("1"), json.Number("10")}).Draw(t, "number")
	case 2, 3:
		return rapid.SampledFrom([]string{"", "a", "b", "1", "é\n"}).Draw(t, "string")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, Value(t, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			object[rapid.SampledFrom([]string{"a", "b", "", "é\n"}).Draw(t, "name")] = Value(t, depth-1)
		}
		return object
	}
}

// Spell writes a value as JSON in a spelling of its own.
func Spell(t *rapid.T, v any) string {
	gap := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
	switch v := v.(type) {
	case json.Number:
		if rapid.Bool().Draw(t, "respell") {
			return map[json.Number]string{"0": "-0.0e7", "1": "10e-1", "10": "1.0E+1"}[v]
		}
		return string(v)
	case string:
		if rapid.Bool().Draw(t, "escape") {
			var b strings.Builder
			for _, r := range v {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
			return `"` + b.String() + `"`
		}
		return fmt.Sprintf("%q", v)
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, gap+Spell(t, item))
		}
		return "[" + strings.Join(parts, gap+",") + gap + "]"
	case map[string]any:
		var parts []string
		for _, name := range rapid.Permutation(names(v)).Draw(t, "order") {
			parts = append(parts, gap+Spell(t, name)+gap+":"+gap+Spell(t, v[name]))
		}
		return "{" + strings.Join(parts, ",") + gap + "}"
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

func names(object map[string]any) []string {
	var all []string
	for _, name := range []string{"a", "b", "", "é\n"} {
		if _, ok := object[name]; ok {
			all = append(all, name)
		}
	}
	return all
}

// Equal is the plain definition of equality in JSON Schema.
func Equal(t *rapid.T, a, b any) bool {
	ja, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	jb, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(ja) == string(jb) // members come out sorted
}
