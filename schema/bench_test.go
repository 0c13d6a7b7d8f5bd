package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
)

// listOf joins n parts with commas.
func listOf(n int, part func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(part(i))
	}
	return b.String()
}

// benchmarks are schemas with payloads that spend their time in one place each.
func benchmarks() []struct{ name, schema, doc string } {
	number := func(i int) string { return fmt.Sprint(i * 7919) }
	member := func(i int) string { return fmt.Sprintf(`"member%d":%d`, i, i) }
	return []struct{ name, schema, doc string }{
		{"names", `{"properties":{` + listOf(40, func(i int) string { return fmt.Sprintf(`"member%d":{"type":"integer"}`, i) }) + `}}`,
			"{" + listOf(40, func(i int) string { return member(39 - i) }) + "}"},
		{"undeclared", `{"additionalProperties":{"type":"integer"}}`, "{" + listOf(5000, member) + "}"},
		{"unique numbers", `{"uniqueItems":true}`, "[" + listOf(10_000, number) + "]"},
		{"unique objects", `{"uniqueItems":true}`, "[" + listOf(10_000, func(i int) string { return `{"id":` + number(i) + `,"tags":["a","b"]}` }) + "]"},
		{"unique few", `{"items":{"uniqueItems":true}}`, "[" + listOf(100, func(i int) string { return "[" + listOf(5, number) + "]" }) + "]"},
		{"const objects", `{"items":{"enum":[{"a":1,"b":[2]},{"a":2,"b":[3]}]}}`, "[" + listOf(100, func(int) string { return `{"b":[3.0],"a":2}` }) + "]"},
		{"recursion", `{"anyOf":[{"type":"number"},{"items":{"$ref":"#"}},{"items":{"$ref":"#"},"minItems":1}]}`,
			"[" + listOf(1000, func(i int) string { return "[[" + number(i) + "],[1,2]]" }) + "]"},
	}
}

// BenchmarkValid measures what a workload of one kind costs.
func BenchmarkValid(b *testing.B) {
	for _, c := range benchmarks() {
		s, err := schema.Compile([]byte(c.schema))
		if err != nil {
			b.Fatal(err)
		}
		doc := []byte(c.doc)
		if !s.Valid(doc) {
			b.Fatalf("%s: the payload is not valid", c.name)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				s.Valid(doc)
			}
		})
	}
}

// BenchmarkCheck measures a payload that breaks its schema in several ways.
func BenchmarkCheck(b *testing.B) {
	s, err := schema.Compile([]byte(contract))
	if err != nil {
		b.Fatal(err)
	}
	doc := []byte(`{"id":"7","kind":"gamma","tags":["a","a"],"notes":[{"at":"noon"}],"extra":1}`)
	b.ReportAllocs()
	for b.Loop() {
		s.Check(doc)
	}
}

// BenchmarkCompile measures a schema of usual size.
func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Compile([]byte(contract)); err != nil {
			b.Fatal(err)
		}
	}
}

const contract = `{"type":"object","additionalProperties":false,"required":["id","kind"],"properties":{
	"id":{"type":"string","format":"uuid"},
	"kind":{"enum":["alpha","beta",3]},
	"count":{"type":"integer","minimum":0,"maximum":100},
	"tags":{"type":"array","items":{"type":"string","pattern":"^[a-z]{1,16}$"},"maxItems":8,"uniqueItems":true},
	"notes":{"type":"array","items":{"$ref":"#/definitions/note"}}},
	"definitions":{"note":{"oneOf":[
		{"type":"object","properties":{"at":{"type":"string","format":"date-time"}},"required":["at"]},
		{"type":"string","maxLength":200}]}}}`
