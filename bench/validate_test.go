package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	googleschema "github.com/google/jsonschema-go/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"

	"github.com/agentd/agentd/schema"
)

// sizes are the payloads, all valid: about 90 bytes, 2 KB and 64 KB.
var sizes = []string{"small", "medium", "large"}

func read(b *testing.B, name string) []byte {
	b.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// compile returns a function from payload bytes to verdict.
type compile func(b *testing.B, schemaText []byte) func(payload []byte) bool

// BenchmarkValidate measures the way from bytes to verdict, decoding included
// where a library works on decoded values.
func BenchmarkValidate(b *testing.B) {
	for _, size := range sizes {
		measure(b, "size="+size, read(b, size+".schema.json"), read(b, size+".json"))
	}
}

// engine is one way from payload bytes to a verdict.
type engine struct {
	name    string
	compile compile
}

// engines returns all of them, our own first.
func engines() []engine {
	return []engine{
		{"agentd", agentd},
		{"agentd-check", agentdCheck},
		{"gojsonschema", xeipuuv},
		{"santhosh", santhoshTekuri},
		{"google", google},
		{"jsontext-syntax-only", jsontextValid},
	}
}

// measure runs every engine on one schema and one valid payload.
func measure(b *testing.B, name string, schemaText, payload []byte) {
	b.Helper()
	for _, e := range engines() {
		b.Run(name+"/engine="+e.name, func(b *testing.B) { run(b, e.compile(b, schemaText), payload, true) })
	}
}

// run measures one engine on a payload whose verdict is known.
func run(b *testing.B, valid func([]byte) bool, payload []byte, want bool) {
	b.Helper()
	if valid(payload) != want {
		b.Fatalf("the payload is valid: %t, want %t", !want, want)
	}
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	computing(b, func() {
		if valid(payload) != want {
			b.Fatal("the verdict changes")
		}
	})
}

// computing measures some work, and reports the time that its thread computes besides: the
// collector's threads are left out, as they would run beside it on an idle machine.
func computing(b *testing.B, work func()) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, known := threadTime()
	n := 0
	for b.Loop() {
		work()
		n++
	}
	if end, _ := threadTime(); known {
		b.ReportMetric(float64(end-start)/float64(n), "cpu-ns/op")
	}
}

func agentd(b *testing.B, text []byte) func([]byte) bool {
	s, err := schema.Compile(text)
	if err != nil {
		b.Fatal(err)
	}
	return s.Valid
}

func agentdCheck(b *testing.B, text []byte) func([]byte) bool {
	s, err := schema.Compile(text)
	if err != nil {
		b.Fatal(err)
	}
	return func(payload []byte) bool { return s.Check(payload).Verdict == schema.Valid }
}

func xeipuuv(b *testing.B, text []byte) func([]byte) bool {
	s, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(text))
	if err != nil {
		b.Fatal(err)
	}
	return func(payload []byte) bool {
		result, err := s.Validate(gojsonschema.NewBytesLoader(payload))
		return err == nil && result.Valid()
	}
}

func santhoshTekuri(b *testing.B, text []byte) func([]byte) bool {
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft7)
	if err := c.AddResource("bench:schema", doc); err != nil {
		b.Fatal(err)
	}
	s, err := c.Compile("bench:schema")
	if err != nil {
		b.Fatal(err)
	}
	return func(payload []byte) bool {
		value, err := santhosh.UnmarshalJSON(bytes.NewReader(payload))
		return err == nil && s.Validate(value) == nil
	}
}

func google(b *testing.B, text []byte) func([]byte) bool {
	var s googleschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		b.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		b.Fatal(err)
	}
	return func(payload []byte) bool {
		var value any
		return json.Unmarshal(payload, &value) == nil && resolved.Validate(value) == nil
	}
}

// jsontextValid decides syntax alone: what any validator must do at least.
func jsontextValid(*testing.B, []byte) func([]byte) bool {
	return func(payload []byte) bool { return jsontext.Value(payload).IsValid() }
}
