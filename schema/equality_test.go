package schema

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema/internal/jsontest"
)

// TestEqualityKeywords holds const, enum and uniqueItems against the plain
// definition.
func TestEqualityKeywords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := jsontest.Value(t, 2), jsontest.Value(t, 2)
		textA, textB := jsontest.Spell(t, a), jsontest.Spell(t, b)
		for src, doc := range map[string]string{
			`{"const":` + textA + `}`:                  textB,
			`{"enum":["other",{"z":0},` + textA + `]}`: textB,
			// Many values are numbered, a few are compared one by one.
			`{"enum":["other",{"z":0},{"z":1},{"z":2},{"z":3},{"z":4},` + textA + `]}`: textB,
			`{"not":{"uniqueItems":true}}`:                                             "[" + textA + ",\"other\"," + textB + "]",
			// Arrays inside of such arrays go by numbers as well, the outermost by hashes.
			`{"items":{"not":{"uniqueItems":true}},"uniqueItems":true}`: "[[" + textA + ",\"other\"," + textB + "]]",
		} {
			s, err := Compile([]byte(src))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Valid([]byte(doc)); got != jsontest.Equal(t, a, b) {
				t.Fatalf("%s on %s: %v", src, doc, got)
			}
		}
	})
}
