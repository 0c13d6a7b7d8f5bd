package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// A result is everything that a run has measured.
type result struct {
	// Machines has one for each run that the rounds are of.
	Machines []machine `json:"machines"`
	// For is the time of one measurement.
	For  time.Duration `json:"for"`
	Rows []row         `json:"rows"`
	// Extras are what is no call, by name, once a round.
	Extras map[string]figure `json:"extras"`
}

// note adds a value of a round.
func (r *result) note(name string, value float64) {
	if r.Extras == nil {
		r.Extras = map[string]figure{}
	}
	r.Extras[name] = append(r.Extras[name], value)
}

// A figure is a value of every round.
type figure []float64

// median is 0 for a figure without values.
func (f figure) median() float64 {
	if len(f) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// spread is the lowest and the highest value.
func (f figure) spread() (low, high float64) {
	if len(f) == 0 {
		return 0, 0
	}
	return slices.Min(f), slices.Max(f)
}

// A metric reads a sample.
type metric func(sample) float64

func perSecond(s sample) float64 { return s.PerSecond }
func p50(s sample) float64       { return micros(s.P50) }
func p99(s sample) float64       { return micros(s.P99) }
func p999(s sample) float64      { return micros(s.P999) }
func allocs(s sample) float64    { return s.Allocs }
func lost(s sample) float64      { return s.Lost }
func unsent(s sample) float64    { return s.Unsent }
func endsCPU(s sample) float64   { return micros(s.CallerCPU + s.CalleeCPU) }
func allCPU(s sample) float64    { return micros(s.CallerCPU + s.CalleeCPU + s.BrokerCPU) }
func brokerCPU(s sample) float64 { return micros(s.BrokerCPU) }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// of is a metric of a system in every round, and nil if it was not measured.
func (r *result) of(system string, s shape, m metric) figure {
	for _, row := range r.Rows {
		if row.System == system && row.Shape == s {
			var f figure
			for _, one := range row.Samples {
				f = append(f, m(one))
			}
			return f
		}
	}
	return nil
}

// ratio divides the metric of one system by that of another, round by round: what else
// the machine did in a round has hit both.
func (r *result) ratio(system, base string, s shape, m metric) figure {
	over, under := r.of(system, s, m), r.of(base, s, m)
	var f figure
	for i := range min(len(over), len(under)) {
		if under[i] > 0 {
			f = append(f, over[i]/under[i])
		}
	}
	return f
}

// difference is what one system has more than another, round by round.
func (r *result) difference(system, base string, s shape, m metric) figure {
	over, under := r.of(system, s, m), r.of(base, s, m)
	var f figure
	for i := range min(len(over), len(under)) {
		f = append(f, over[i]-under[i])
	}
	return f
}

// shapes are those that were measured, in order.
func (r *result) shapes() []shape {
	var all []shape
	for _, row := range r.Rows {
		if !slices.Contains(all, row.Shape) {
			all = append(all, row.Shape)
		}
	}
	return all
}

// writeTable writes a shape as Markdown.
func (r *result) writeTable(out io.Writer, s shape) {
	fmt.Fprintf(out, "\n### %s\n\n", s)
	if s.Rate > 0 {
		r.writeOpen(out, s)
		return
	}
	fmt.Fprintln(out, "| system | calls/s | × raw | × floor | p50 µs | × raw | p99 µs | CPU µs/call | broker CPU | CPU × floor | allocs/call | unrecorded |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, row := range r.Rows {
		if row.Shape != s {
			continue
		}
		of := func(m metric) float64 { return r.of(row.System, s, m).median() }
		fmt.Fprintf(out, "| %s | %.0f | %s | %s | %.0f | %s | %.0f | %.1f | %.1f | %s | %s | %s |\n", row.System,
			of(perSecond), spreadText(r.ratio(row.System, "raw", s, perSecond)), spreadText(r.ratio(row.System, "floor", s, perSecond)),
			of(p50), spreadText(r.ratio(row.System, "raw", s, p50)), of(p99), of(endsCPU), of(brokerCPU), spreadText(r.ratio(row.System, "floor", s, allCPU)), allocsText(row.System, of(allocs)), percent(of(lost)))
	}
}

// writeOpen writes a shape of an open loop. Its throughput is the schedule's.
func (r *result) writeOpen(out io.Writer, s shape) {
	fmt.Fprintln(out, "| system | calls/s | not sent | p50 µs | × raw | p99 µs | p99.9 µs | CPU µs/call | broker CPU |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, row := range r.Rows {
		if row.Shape != s {
			continue
		}
		of := func(m metric) float64 { return r.of(row.System, s, m).median() }
		fmt.Fprintf(out, "| %s | %.0f | %s | %.0f | %s | %.0f | %.0f | %.1f | %.1f |\n", row.System, of(perSecond), percent(of(unsent)),
			of(p50), spreadText(r.ratio(row.System, "raw", s, p50)), of(p99), of(p999), of(endsCPU), of(brokerCPU))
	}
}

// spreadText shows the median and how far the rounds are apart.
func spreadText(f figure) string {
	if len(f) == 0 {
		return "–"
	}
	low, high := f.spread()
	return fmt.Sprintf("%.2f (%.2f–%.2f)", f.median(), low, high)
}

// allocsText leaves out the allocations of a system whose processes nobody can ask.
func allocsText(system string, n float64) string {
	if system == socketName {
		return "–"
	}
	return fmt.Sprintf("%.0f", n)
}

func percent(share float64) string {
	if share <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// writeGoals writes those goals that were measured.
func (r *result) writeGoals(out io.Writer) {
	fmt.Fprint(out, "\n| goal | wanted | measured | spread | |\n|---|---|---|---|---|\n")
	for _, g := range r.standings() {
		if g.verdict != unmeasured {
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", g.Text, g.Want, g.Measured, g.Spread, g.Verdict)
		}
	}
}
