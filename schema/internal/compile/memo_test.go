package compile

import (
	"fmt"
	"strings"
	"testing"
)

// TestMemoWhereItPays pins which schemas are judged through a memo. Without one
// where it is needed, a payload could take time beyond all bounds; with one where
// it is not, every value would pay for a look-up.
func TestMemoWhereItPays(t *testing.T) {
	branches := func(n int, of string) string { return strings.Repeat(","+of, n)[1:] }
	tags := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"type":"object","properties":{"k":{"const":"k%d"}},"required":["k"]}`, i))
		}
		return strings.Join(all, ",")
	}
	for _, c := range []struct {
		name, schema string
		want         bool
	}{
		{"nothing", `{}`, false},
		{"eight readings", `{"anyOf":[` + branches(7, `{"required":["a"]}`) + `]}`, false},
		{"nine readings", `{"anyOf":[` + branches(8, `{"required":["a"]}`) + `]}`, true},
		{"nine readings below", `{"items":{"properties":{"p":{"allOf":[` + branches(8, `{"required":["a"]}`) + `]}}}}`, true},
		{"nine readings of arrays", `{"oneOf":[` + branches(8, `{"type":"array"}`) + `]}`, true},
		{"branches that fail at once", `{"oneOf":[` + branches(200, `{"type":"string"}`) + `]}`, false},
		{"branches that a property picks", `{"oneOf":[` + tags(50) + `]}`, false},
		{"anyOf that a property picks", `{"anyOf":[` + tags(9) + `]}`, true},
		{"branches that a property picks beside others", `{"oneOf":[` + tags(8) + `],"not":{"required":["x"]}}`, true},
		{"branches that a property picks beside allOf", `{"oneOf":[` + tags(8) + `],"allOf":[{"required":["x"]}]}`, true},
		{"branches that a property picks beside anyOf", `{"oneOf":[` + tags(8) + `],"anyOf":[{"required":["x"]}]}`, true},
		{"256 steps", `{"allOf":[` + branches(255, `{"type":"string"}`) + `]}`, false},
		{"257 steps", `{"allOf":[` + branches(256, `{"type":"string"}`) + `]}`, true},
		{"recursion without combinators", `{"items":{"$ref":"#"}}`, false},
		{"recursion through a combinator", `{"anyOf":[{"type":"null"},{"items":{"$ref":"#"}}]}`, true},
		{"recursion beside eight readings", `{"properties":{"a":{"anyOf":[` + branches(7, `{"required":["a"]}`) + `]},"b":{"$ref":"#"}}}`, true},
		{"recursion beside seven readings", `{"properties":{"a":{"anyOf":[` + branches(6, `{"required":["a"]}`) + `]},"b":{"$ref":"#"}}}`, false},
		{"recursion of two", `{"$ref":"#/definitions/a","definitions":{"a":{"properties":{"b":{"$ref":"#/definitions/b"}}},"b":{"anyOf":[{"type":"null"},{"items":{"$ref":"#/definitions/a"}}]}}}`, true},
		{"a combinator above recursion", `{"anyOf":[{"type":"null"},{"$ref":"#/definitions/a"}],"definitions":{"a":{"items":{"$ref":"#/definitions/a"}}}}`, false},
		{"a combinator below recursion", `{"properties":{"next":{"$ref":"#"},"v":{"anyOf":[{"type":"null"},{"minItems":1}]}}}`, false},
	} {
		s, faults := Compile([]byte(c.schema))
		if len(faults) > 0 {
			t.Fatalf("%s: %v", c.name, faults)
		}
		if s.Memoise != c.want {
			t.Errorf("%s: memo %v, want %v", c.name, s.Memoise, c.want)
		}
	}
	for parts, want := range map[int]bool{15: false, 16: true} {
		s, faults := Compile([]byte(`{"allOf":[` + branches(parts, `{"type":"string"}`) + `]}`))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if s.Root.Heavy != want {
			t.Errorf("%d branches: heavy is %v", parts, s.Root.Heavy)
		}
	}
}
