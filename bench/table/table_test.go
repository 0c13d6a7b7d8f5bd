package main

import (
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	all, err := parse(strings.NewReader(`goos: linux
BenchmarkWorkload/workload=near/payload=valid/engine=agentd-2  10  100 ns/op  5 MB/s  0 B/op  0 allocs/op
BenchmarkWorkload/workload=near/payload=valid/engine=agentd-2  10  300 ns/op  5 MB/s  0 B/op  0 allocs/op
BenchmarkWorkload/workload=near/payload=valid/engine=google-2  10  4000 ns/op
BenchmarkWorkload/workload=near/payload=valid/engine=santhosh-2  10  3000 ns/op
BenchmarkWorkload/workload=near/payload=invalid/engine=agentd-2  10  2000 ns/op
BenchmarkWorkload/workload=near/payload=invalid/engine=agentd-check-2  10  5000 ns/op
BenchmarkWorkload/workload=near/payload=invalid/engine=google-2  10  3000 ns/op
BenchmarkWorkload/workload=far/payload=valid/engine=agentd  10  1000000 ns/op
BenchmarkWorkload/workload=far/payload=valid/engine=gojsonschema  10  200000000 ns/op
BenchmarkCompile/schema=small/engine=agentd-2  10  2500 ns/op  5983 retained-B  13257 B/op
BenchmarkCompile/schema=small/engine=ajv	20	13636998.6 ns/op
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	rendered := tables(all)
	for name, want := range map[string]string{
		"workloads": "|---|---|---|---|---|---|---|---|---|\n" +
			"| near | 100 ns | santhosh | 30.0× | 2.0 µs | google | 1.5× | – | 2.5× |\n" +
			"| far | 1.00 ms | gojsonschema | 200× | – | – | – | – | – |\n",
		"compile": "| small | 2.5 µs | – | – | – | 5455× |\n",
		"memory":  "| small | 6.0 / 13 / 0 | – | – | – |\n",
	} {
		if !strings.HasSuffix(rendered[name], want) {
			t.Errorf("%s is\n%swant\n%s", name, rendered[name], want)
		}
	}
	page, err := replace([]byte("a\n<!-- table: x -->\nold\n<!-- end of x -->\nb\n"), "x", "new\n")
	if err != nil || string(page) != "a\n<!-- table: x -->\nnew\n<!-- end of x -->\nb\n" {
		t.Errorf("%q, %v", page, err)
	}
	if _, err := replace(page, "y", ""); err == nil {
		t.Error("a table without a place")
	}
}
