package schema_test

import (
	"testing"

	"github.com/agentd/agentd/schema/internal/schematest"
)

// A declared name is known in every spelling, and one that needs escapes is not
// taken for bytes that look like it.
func TestSpellingOfNames(t *testing.T) {
	s := schematest.MustCompile(t, `{"properties":{"x\ny":{"type":"null"},"e\":null,\"f":{"type":"null"},"a\"b":{"type":"null"},"c\\d":{"type":"null"},"e":{"type":"null"},"é":{"type":"null"},"":{"type":"null"}},
		"required":["é"],"additionalProperties":false}`)
	for doc, want := range map[string]bool{
		`{"a\"b":null,"c\\d":null,"e":null,"é":null,"":null}`:                   true,
		`{"a\u0022b":null,"c\u005cd":null,"\u0065":null,"\u00e9":null}`:         true,
		` { "" : null , "é" : null , "e" :null, "c\\d": null , "a\"b" :null } `: true,
		`{"é":null}`:                     true,
		`{"e":null}`:                     false,
		`{"a"b":null,"é":null}`:          false,
		`{"c\d":null,"é":null}`:          false,
		`{"é":null,"e":null,"e":null}`:   false,
		`{"é":null,"e":null,"\u0065":1}`: false,
		`{"é":null,"é":null}`:            false,
		`{"é":1}`:                        false,
		`{"é":`:                          false,
		`{"é"`:                           false,
		`{"e`:                            false,
		`{"é":null,"":null,"":null}`:     false,
		`{"é":null,"f":null}`:            false,
		`{"x\ny":null,"é":null}`:         true,
		"{\"x\ny\":null,\"é\":null}":     false, // a control character in a string is not JSON
		`{"e\":null,\"f":null,"é":null}`: true,
		`{"e":null,"f":null,"é":null}`:   false, // two members, of which the second is not declared
	} {
		if got := s.Valid([]byte(doc)); got != want {
			t.Errorf("Valid(%s) = %t", doc, got)
		}
	}
}
