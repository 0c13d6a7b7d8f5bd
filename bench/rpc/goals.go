package main

import (
	"fmt"
	"slices"
)

// A goal is something that agentd wants to be able to do. The page shows what became of
// each, from the data of the run.
type goal struct {
	text string
	want float64
	// atLeast says that more is better.
	atLeast bool
	// unit follows the figures, such as " µs"; "×" for ratios.
	unit    string
	measure func(*result) figure
	// elsewhere says what shows a goal that this program does not measure.
	elsewhere string
}

// Shapes that goals are about.
var (
	one       = shape{Size: 200, Callers: 1}
	many      = shape{Size: 200, Callers: 256}
	manyLarge = shape{Size: 4096, Callers: 256}
)

// ratioOf, valueOf and overOf make measures.
func ratioOf(system, base string, s shape, m metric) func(*result) figure {
	return func(r *result) figure { return r.ratio(system, base, s, m) }
}

func valueOf(system string, s shape, m metric) func(*result) figure {
	return func(r *result) figure { return r.of(system, s, m) }
}

func overOf(system, base string, s shape, m metric) func(*result) figure {
	return func(r *result) figure { return r.difference(system, base, s, m) }
}

func extraOf(name string) func(*result) figure {
	return func(r *result) figure { return r.Extras[name] }
}

func goals() []goal {
	return slices.Concat(shippedGoals(), coreGoals(), processGoals(), logGoals())
}

func shippedGoals() []goal {
	return []goal{
		{text: "`agentd run` as it ships, 256 callers, 200 bytes: calls/s against the floor", want: 0.85, atLeast: true, unit: "×", measure: ratioOf("run", "floor", many, perSecond)},
		{text: "`agentd run` as it ships, 256 callers, 200 bytes: calls/s against raw nats.go", want: 0.40, atLeast: true, unit: "×", measure: ratioOf("run", "raw", many, perSecond)},
		{text: "`agentd run` as it ships, 256 callers, 200 bytes: calls/s against gRPC-go", want: 1.05, atLeast: true, unit: "×", measure: ratioOf("run", "grpc", many, perSecond)},
		{text: "`agentd run` as it ships, 256 callers, 200 bytes: allocations a call, both ends", want: 40, measure: valueOf("run", many, allocs)},
		{text: "`agentd run` with log, rules and identities, 256 callers, 200 bytes: calls/s against the floor", want: 0.70, atLeast: true, unit: "×", measure: ratioOf("run-full", "floor", many, perSecond)},
		{text: "the access log, 256 callers: CPU a call, both ends", want: 6, unit: " µs", measure: overOf("run", "run-nolog", many, endsCPU)},
		{text: "the access log, 256 callers: allocations a call, both ends", want: 12, measure: overOf("run", "run-nolog", many, allocs)},
	}
}

func coreGoals() []goal {
	return []goal{
		{text: "`rpc` on NATS, one caller, 200 bytes: p50 against raw", want: 1.2, unit: "×", measure: ratioOf("rpc", "raw", one, p50)},
		{text: "`rpc` on NATS with an inline skill, one caller, 200 bytes: p50 against raw", want: 1.1, unit: "×", measure: ratioOf("rpc-inline", "raw", one, p50)},
		{text: "`rpc` on NATS, 256 callers, 200 bytes: calls/s against raw", want: 0.55, atLeast: true, unit: "×", measure: ratioOf("rpc", "raw", many, perSecond)},
		{text: "`rpc` on NATS, 256 callers, 4 KB: calls/s against raw", want: 0.45, atLeast: true, unit: "×", measure: ratioOf("rpc", "raw", manyLarge, perSecond)},
		{text: "`rpc` in memory, 256 callers, 200 bytes: time of a call against the floor in memory", want: 1.05, unit: "×", measure: ratioOf("memory-floor", "memory-rpc", many, perSecond)},
		{text: "a fleet in memory with its access logs, 256 callers, 200 bytes: time of a call against the floor in memory", want: 1.3, unit: "×", measure: ratioOf("memory-floor", "memory-run", many, perSecond)},
		{text: "an envelope encoded and decoded, 200 bytes: CPU against the hand-written strict codec", want: 1.1, unit: "×", measure: extraOf(extraCodecTime)},
		{text: "an envelope encoded and decoded, 200 bytes: allocations", want: 4, measure: extraOf(extraCodecAllocs)},
	}
}

func processGoals() []goal {
	return []goal{
		{text: "`agentd run` idle: resident memory", want: 22, unit: " MB", measure: extraOf(extraIdleMB)},
		{text: "`agentd run`: from its start until it is ready", want: 40, unit: " ms", measure: extraOf(extraStartMS)},
		{text: "loading a fleet of 1,000 agents: CPU", want: 0.5, unit: " s", measure: extraOf(extraLoad1000)},
		{text: "loading a fleet of 1,000 agents, and once more as a reload does: most resident memory", want: 80, unit: " MB", measure: extraOf(extraLoad1000MB)},
		{text: "loading a fleet of 10,000 agents: CPU", want: 5, unit: " s", measure: extraOf(extraLoad10000)},
	}
}

// logGoals need a log of a million records or more, and minutes to write it.
func logGoals() []goal {
	const erasing = "reached for records of calls (12 to 20 ms), missed for others (39 to 55 ms): [audit-benchmarks.md](audit-benchmarks.md#erasing)"
	const queries = "missed where matches are rare: [audit-benchmarks.md](audit-benchmarks.md#records-of-calls)"
	return []goal{
		{text: "a query with any condition or pair of conditions, 1 M records: time against the bare query", want: 2, unit: "×", elsewhere: queries},
		{text: "a query with any condition or pair of conditions, 10 M records: time against the bare query", want: 2, unit: "×", elsewhere: queries},
		{text: "appends while a log is pruned: p99", want: 20, unit: " ms", elsewhere: erasing},
		{text: "appends while a log is redacted: p99", want: 20, unit: " ms", elsewhere: erasing},
	}
}

// A verdict is what became of a goal.
type verdict uint8

const (
	missed verdict = iota
	reached
	unmeasured
)

func (v verdict) String() string { return [...]string{"missed", "reached", "not measured here"}[v] }

// judge compares the median with what is wanted.
func (g goal) judge(f figure) verdict {
	switch m := f.median(); {
	case len(f) == 0:
		return unmeasured
	case g.atLeast && m >= g.want, !g.atLeast && m <= g.want:
		return reached
	}
	return missed
}

// A standing is a goal with what was measured, as texts.
type standing struct {
	Text, Want, Measured, Spread, Verdict string
	verdict                               verdict
}

// standings are the goals of the page, those that are missed first.
func (r *result) standings() []standing {
	var all []standing
	for _, g := range goals() {
		var f figure
		if g.measure != nil {
			f = g.measure(r)
		}
		s := standing{Text: g.text, verdict: g.judge(f), Measured: "–", Spread: "–"}
		s.Verdict = s.verdict.String()
		if s.verdict == unmeasured && g.elsewhere != "" {
			s.Verdict = g.elsewhere
		}
		sign := "at most"
		if g.atLeast {
			sign = "at least"
		}
		s.Want = sign + " " + g.show(g.want)
		if len(f) > 0 {
			low, high := f.spread()
			s.Measured, s.Spread = g.show(f.median()), g.show(low)+" to "+g.show(high)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b standing) int { return int(a.verdict) - int(b.verdict) })
	return all
}

// show writes a value with as many digits as it has meaning.
func (g goal) show(v float64) string {
	digits := 2
	if g.unit == "" || v >= 10 {
		digits = 0
	} else if g.unit != "×" {
		digits = 1
	}
	unit := g.unit
	if unit == "×" {
		unit = " ×"
	}
	return fmt.Sprintf("%.*f%s", digits, v, unit)
}
