package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results holds what was measured, by benchmark, case, engine and unit.
type results map[string]map[string]map[string]map[string][]float64

// cpus is the suffix that go test adds to names.
var cpus = regexp.MustCompile(`-\d+$`)

// parse reads lines such as
//
//	BenchmarkFull/schema=events/payload=valid/engine=agentd-2  513  317042 ns/op  0 B/op
//
// The case is all between the benchmark and the engine.
func parse(r io.Reader) (results, error) {
	all := results{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		benchmark, rest, ok := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "/")
		which, engine, both := strings.Cut(rest, "/engine=")
		if !ok || !both {
			return nil, fmt.Errorf("%s names no engine", fields[0])
		}
		engine = cpus.ReplaceAllString(engine, "")
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", fields[0], err)
			}
			all.add(benchmark, which, engine, fields[i+1], v)
		}
	}
	return all, nil
}

func (r results) add(benchmark, which, engine, unit string, v float64) {
	if r[benchmark] == nil {
		r[benchmark] = map[string]map[string]map[string][]float64{}
	}
	if r[benchmark][which] == nil {
		r[benchmark][which] = map[string]map[string][]float64{}
	}
	if r[benchmark][which][engine] == nil {
		r[benchmark][which][engine] = map[string][]float64{}
	}
	r[benchmark][which][engine][unit] = append(r[benchmark][which][engine][unit], v)
}

// median returns the median of a unit; ok is false where it was not measured.
func (r results) median(benchmark, which, engine, unit string) (v float64, ok bool) {
	values := slices.Clone(r[benchmark][which][engine][unit])
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2, true
	}
	return values[middle], true
}

// time is the shortest time in nanoseconds: other work on a machine only adds to it. The time
// that the thread computed is preferred, to which that adds least.
func (r results) time(benchmark, which, engine string) (ns float64, ok bool) {
	values := r[benchmark][which][engine]["cpu-ns/op"]
	if len(values) == 0 {
		values = r[benchmark][which][engine]["ns/op"]
	}
	if len(values) == 0 {
		return 0, false
	}
	return slices.Min(values), true
}

// best returns the fastest of the other Go libraries.
func (r results) best(benchmark, which string) (engine string, ns float64, ok bool) {
	for _, e := range libraries() {
		if t, measured := r.time(benchmark, which, e); measured && (!ok || t < ns) {
			engine, ns, ok = e, t, true
		}
	}
	return engine, ns, ok
}
