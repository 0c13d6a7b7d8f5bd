package contain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// contract is a schema like those of a real capability: twenty properties in
// three levels. extra is added to the innermost object.
func contract(extra string) string {
	return fmt.Sprintf(`{
		"type": "object", "additionalProperties": false,
		"required": ["repo", "number", "author", "files"],
		"properties": {
			"repo": {"type": "string", "pattern": "^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$"},
			"number": {"type": "integer", "minimum": 1},
			"title": {"type": "string", "maxLength": 256},
			"url": {"type": "string", "format": "uri"},
			"openedAt": {"type": "string", "format": "date-time"},
			"severity": {"enum": ["low", "medium", "high"]},
			"labels": {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": true},
			"author": {
				"type": "object", "additionalProperties": false, "required": ["email"],
				"properties": {
					"id": {"type": "string", "format": "uuid"}, "email": {"type": "string", "format": "email"},
					"name": {"type": ["string", "null"]}, "admin": {"type": "boolean"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}
				}
			},
			"files": {
				"type": "array", "maxItems": 1000,
				"items": {
					"type": "object", "required": ["path", "change"],
					"properties": {
						"path": {"type": "string", "minLength": 1}, "change": {"enum": ["added", "removed", "modified"]},
						"lines": {"type": "integer", "minimum": 0}, "score": {"type": "number", "minimum": 0, "maximum": 1},
						"verdict": {"oneOf": [
							{"type": "object", "required": ["kind"], "properties": {"kind": {"const": "ok"}}},
							{"type": "object", "required": ["kind", "why"], "properties": {"kind": {"const": "bad"}, "why": {"type": "string"}}}
						]}%s
					}
				}
			}
		}
	}`, extra)
}

func BenchmarkIsSubschema(b *testing.B) {
	tests := []struct {
		name, a, b string
		want       contain.Answer
	}{
		{"equal", contract(""), contract(""), contain.Proven},
		{"wider", contract(`, "note": {"type": "integer"}`), contract(""), contain.Proven},
		{"narrower", contract(""), contract(`, "note": {"type": "integer"}`), contain.Refuted},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			x, y := schematest.MustCompile(b, test.a), schematest.MustCompile(b, test.b)
			b.ReportAllocs()
			for b.Loop() {
				if got := contain.IsSubschema(x, y); got.Answer != test.want {
					b.Fatal(got)
				}
			}
		})
	}
}

func BenchmarkSample(b *testing.B) {
	s := schematest.MustCompile(b, contract(""))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contain.Sample(s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPairs proves or refutes the pairs of others over the whole vocabulary, and
// reports the median besides.
func BenchmarkPairs(b *testing.B) {
	type pair struct{ x, y *schema.Schema }
	var pairs []pair
	for _, p := range fullPairs(b) {
		if x, y, err := p.compile(); err == nil {
			pairs = append(pairs, pair{x, y})
		}
	}
	times := make([][]time.Duration, len(pairs))
	b.ReportAllocs()
	for b.Loop() {
		for i, p := range pairs {
			start := time.Now()
			contain.IsSubschema(p.x, p.y)
			times[i] = append(times[i], time.Since(start))
		}
	}
	var medians []time.Duration
	for _, t := range times {
		slices.Sort(t)
		medians = append(medians, t[len(t)/2])
	}
	slices.Sort(medians)
	b.ReportMetric(float64(medians[len(medians)/2].Nanoseconds()), "median-ns")
	b.ReportMetric(float64(medians[len(medians)*99/100].Nanoseconds()), "p99-ns")
}
