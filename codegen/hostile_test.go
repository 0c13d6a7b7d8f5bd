package codegen_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
)

// No schema makes the output grow out of proportion.
func TestOutputIsBounded(t *testing.T) {
	nest := func(depth int, open, shut string) string {
		return strings.Repeat(open, depth) + `{"type":"string"}` + strings.Repeat(shut, depth)
	}
	wide := make([]string, 60)
	for i := range wide {
		wide[i] = fmt.Sprintf(`{"type":"object","properties":{"p%d":{"type":"string"}},"required":["p%d"]}`, i, i)
	}
	union := `{"oneOf":[` + strings.Join(wide, ",") + `]}`
	tests := map[string]string{
		"members beside typed others": nest(30, `{"type":"object","properties":{"a":`, `},"additionalProperties":{"type":"integer"}}`),
		"typed others in others":      nest(30, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":`, `}`),
		"intersections in members": nest(20, `{"allOf":[{"type":"object","properties":{"a":{"type":"object"}}},{"type":"object","properties":{"a":`,
			`}}]}`),
		"unions in members":       nest(30, `{"oneOf":[{"type":"null"},{"type":"object","properties":{"a":`, `}}]}`),
		"arrays":                  nest(60, `{"type":"array","items":`, `}`),
		"product of unions":       `{"allOf":[` + union + `,` + union + `,` + union + `]}`,
		"recursive intersections": `{"allOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/b"}],"definitions":{` + rings() + `}}`,
	}
	for name, source := range tests {
		t.Run(name, func(t *testing.T) {
			file := []byte(`{"version":1,"agent":"agent://big","transports":[{"kind":"memory","topics":{"requests":"t"}}],
				"capabilities":[{"name":"x","inputSchema":` + source + `}]}`)
			doc, err := capability.Parse("big.json", file, capability.LoadOptions{ValidateSchemas: true})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			api, err := codegen.NewAPI(doc)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range codegen.Languages() {
				for _, file := range []codegen.File{l.Generate(api), l.Standalone().Generate(api)} {
					if n := len(file.Content); n > 1<<20 {
						t.Errorf("%s: %d bytes for a schema of %d", file.Path, n, len(source))
					}
				}
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

// rings are two definitions whose members lead to themselves in many ways.
func rings() string {
	var out []string
	for _, name := range []string{"a", "b"} {
		var members []string
		for i := range 12 {
			members = append(members, fmt.Sprintf(`"m%d":{"$ref":"#/definitions/%s"}`, i, name))
		}
		out = append(out, fmt.Sprintf(`"%s":{"type":"object","properties":{%s}}`, name, strings.Join(members, ",")))
	}
	return strings.Join(out, ",")
}
