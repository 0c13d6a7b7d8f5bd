package ijson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/agentd/agentd/internal/ijson"
)

// BenchmarkCheck sets the strict scan beside encoding/json's grammar check.
func BenchmarkCheck(b *testing.B) {
	row := `{"id":"7d444840-9dc0-11d1-b245-5ffdce74fad2","name":"a name of common length","score":12.5,"tags":["red","green"],"active":true}`
	text := []byte("[" + row + string(bytes.Repeat([]byte(","+row), 500)) + "]")
	b.Run("ijson", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if err := ijson.Check(text, 10); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !json.Valid(text) {
				b.Fatal("invalid")
			}
		}
	})
}

// BenchmarkAppendQuoted quotes what messages hold most: short plain strings,
// and now and then one with escapes or characters beyond ASCII.
func BenchmarkAppendQuoted(b *testing.B) {
	for name, text := range map[string]string{
		"short":   "severity",
		"id":      "7d444840-9dc0-11d1-b245-5ffdce74fad2",
		"escapes": "line one\nline \"two\"\tand a tail that is plain",
		"unicode": "日本語 mixed with ascii that is longer than eight",
	} {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, 0, 128)
			for b.Loop() {
				dst = ijson.AppendQuoted(dst[:0], text)
			}
		})
	}
}
