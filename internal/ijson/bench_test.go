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
