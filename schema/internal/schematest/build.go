package schematest

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
)

// List joins n elements into an array.
func List(n int, element func(i int) string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	b.WriteByte(']')
	return b.String()
}

// Object joins n members.
func Object(n int, member func(i int) string) string {
	text := List(n, member)
	return "{" + text[1:len(text)-1] + "}"
}

// Chain nests additions to the left, n deep.
func Chain(n int, leaf string) []byte {
	return []byte(strings.Repeat(`{"add":[`, n) + leaf + strings.Repeat(`,                    1]}`, n))
}

// MustCompile compiles a schema that is sound.
func MustCompile(t testing.TB, src string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(src))
	if err != nil {
		t.Fatalf("Compile(%.300s): %v", src, err)
	}
	return s
}

// All is a schema that holds where all parts do.
func All(parts ...any) Map { return Map{"allOf": parts} }

// Either is a schema that holds where some part does.
func Either(parts ...any) Map { return Map{"anyOf": parts} }

// One is a schema that holds where exactly one part does.
func One(parts ...any) Map { return Map{"oneOf": parts} }

// No is a schema that holds where its part does not.
func No(part any) Map { return Map{"not": part} }
