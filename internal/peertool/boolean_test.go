package peertool

import "testing"

func TestSpelledOut(t *testing.T) {
	for src, want := range map[string]string{
		`{"type":"object","properties":{"a":true,"b": false ,"c":{"properties":{"d":true}}},"additionalProperties":true}`: `{"type":"object","properties":{"a":{},"b": {"not":{}} ,"c":{"properties":{"d":true}}},"additionalProperties":true}`,
		` { "properties" : { } } `: ` { "properties" : { } } `,
		`{}`:                       `{}`,
		`{"properties":{"true":{"const":true}},"not":{"properties":{"a":true}}}`: `{"properties":{"true":{"const":true}},"not":{"properties":{"a":true}}}`,
	} {
		if got := string(spelledOut([]byte(src))); got != want {
			t.Errorf("%s becomes %s, want %s", src, got, want)
		}
	}
}
