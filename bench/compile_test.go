package bench_test

import (
	"runtime"
	"testing"
)

// BenchmarkCompile measures the way from the text of a schema to what validates: the
// time, what is allocated on the way (B/op), and what stays (retained-B).
func BenchmarkCompile(b *testing.B) {
	for _, size := range sizes {
		compileWorkload(b, workload{name: size, schema: string(read(b, size+".schema.json")), valid: string(read(b, size+".json")), invalid: "["}, engines())
	}
	for _, w := range fullWorkloads(b) {
		compileWorkload(b, w, fullEngines())
	}
}

// compileWorkload runs the engines that answer both payloads right.
func compileWorkload(b *testing.B, w workload, by []engine) {
	b.Helper()
	for _, e := range by {
		if e.name == "agentd-check" || e.name == "jsontext-syntax-only" {
			continue
		}
		b.Run("schema="+w.name+"/engine="+e.name, func(b *testing.B) {
			text := []byte(w.schema)
			if valid := e.compile(b, text); !valid([]byte(w.valid)) || valid([]byte(w.invalid)) {
				b.Skip("gives another answer")
			}
			b.ReportAllocs()
			computing(b, func() { e.compile(b, text) })
			b.ReportMetric(retained(func() any { return e.compile(b, text) }), "retained-B")
		})
	}
}

// retained returns how many bytes one of many values keeps alive.
func retained(make func() any) float64 {
	const count = 50
	var kept [count]any
	before := live()
	for i := range kept {
		kept[i] = make()
	}
	after := live()
	runtime.KeepAlive(&kept)
	return max(0, float64(after)-float64(before)) / count
}

// live returns the bytes that are alive.
func live() uint64 {
	runtime.GC()
	runtime.GC() // the first may only empty pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
