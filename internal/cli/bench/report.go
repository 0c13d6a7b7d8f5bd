package bench

import (
	"fmt"
	"strconv"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/loadgen"
	"github.com/agentd/agentd/internal/output"
)

// through says in every report what the latencies contain.
const through = "the control API"

// A Report is what -o json prints.
type Report struct {
	Peer       envelope.Address `json:"peer"`
	Capability string           `json:"capability"`
	// Agent is the caller, "" for the only one that runs. Through says how the calls get to
	// it: that way is part of every latency.
	Agent   string `json:"agent,omitempty"`
	Through string `json:"through"`
	// PayloadBytes is the size of the payload, and Sampled is set when it was made from the
	// schema.
	PayloadBytes int  `json:"payloadBytes"`
	Sampled      bool `json:"sampled"`
	// Rate is the schedule's, a second, and Concurrency the number of callers; one is 0.
	Rate        float64 `json:"rate,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"`
	// ElapsedMs is from the first call to the end of the last one.
	ElapsedMs float64 `json:"elapsedMs"`
	// Calls have ended, PerSecond of them in a second. Due is how many the schedule wanted
	// to begin, Unsent how many of them found no room, Unfinished how many were cut short.
	Calls      int     `json:"calls"`
	PerSecond  float64 `json:"perSecond"`
	Due        int     `json:"due,omitempty"`
	Unsent     int     `json:"unsent,omitempty"`
	Unfinished int     `json:"unfinished,omitempty"`
	// MaxInFlight is the most calls that ran at once.
	MaxInFlight int `json:"maxInFlight"`
	// LatencyMs is that of all calls, from when the schedule wanted them to begin.
	LatencyMs Latency   `json:"latencyMs"`
	Outcomes  []Outcome `json:"outcomes"`
}

// A Latency is in milliseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// An Outcome is the calls that ended alike. Those of the status unsent were never made,
// and have the time that they had waited.
type Outcome struct {
	Status    string  `json:"status"`
	Code      string  `json:"code,omitempty"`
	Calls     int     `json:"calls"`
	LatencyMs Latency `json:"latencyMs"`
	// RetryAfterMs is the longest that a refusal asked to wait.
	RetryAfterMs float64 `json:"retryAfterMs,omitempty"`
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func latencyOf(l loadgen.Latency) Latency {
	return Latency{Mean: millis(l.Mean), P50: millis(l.P50), P90: millis(l.P90), P99: millis(l.P99), P999: millis(l.P999), Max: millis(l.Max)}
}

func (b *bench) report(r *loadgen.Report) *Report {
	report := &Report{
		Peer: b.peer, Capability: b.capability, Agent: b.request.Caller.Agent, Through: through, PayloadBytes: len(b.payload), Sampled: b.sampled,
		Rate: b.rate, Concurrency: b.request.Concurrency, ElapsedMs: millis(r.Elapsed), Calls: r.Calls, PerSecond: r.PerSecond(),
		Due: r.Due, Unsent: r.Unsent, Unfinished: r.Unfinished, MaxInFlight: r.Peak, LatencyMs: latencyOf(r.Latency), Outcomes: []Outcome{},
	}
	for _, g := range r.Groups {
		status := g.Status
		if status == "" {
			status = "ok"
		}
		report.Outcomes = append(report.Outcomes, Outcome{
			Status: status, Code: g.Code, Calls: g.Calls, LatencyMs: latencyOf(g.Latency), RetryAfterMs: millis(g.RetryAfter),
		})
	}
	return report
}

// write prints the report in the chosen format.
func (b *bench) write(r *loadgen.Report) error {
	report := b.report(r)
	if b.env.Format != output.Table {
		return b.env.WriteJSON(report)
	}
	payload := fmt.Sprintf("a payload of %d bytes", report.PayloadBytes)
	if report.Sampled {
		payload = fmt.Sprintf("a sampled payload of %d bytes", report.PayloadBytes)
	}
	load := fmt.Sprintf("%d callers, each as fast as it can", report.Concurrency)
	if report.Rate > 0 {
		load = strconv.FormatFloat(report.Rate, 'f', -1, 64) + "/s by schedule"
	}
	fmt.Fprintf(b.env.Stdout, "%s/%s through %s: %s, %s\n", output.Printable(string(report.Peer)), output.Printable(report.Capability), through, load, payload)
	fmt.Fprintf(b.env.Stdout, "%d calls in %s, %.1f/s, at most %d at once\n", report.Calls, r.Elapsed.Round(time.Millisecond), report.PerSecond, report.MaxInFlight)
	if report.Unsent > 0 {
		fmt.Fprintf(b.env.Stdout, "the rate was not kept: %d of %d calls found no room among %d\n", report.Unsent, report.Due, mostInFlight)
	}
	if report.Unfinished > 0 {
		fmt.Fprintf(b.env.Stdout, "%d calls were cut short\n", report.Unfinished)
	}
	fmt.Fprintln(b.env.Stdout)
	rows := [][]string{row("all", "", report.Calls+report.Unsent, report.LatencyMs, 0)}
	for _, o := range report.Outcomes {
		rows = append(rows, row(o.Status, o.Code, o.Calls, o.LatencyMs, o.RetryAfterMs))
	}
	return b.env.WriteTable([]string{"STATUS", "CODE", "CALLS", "P50", "P90", "P99", "P99.9", "MAX", "RETRY AFTER"}, rows)
}

func row(status, code string, calls int, l Latency, retryAfter float64) []string {
	after := ""
	if retryAfter > 0 {
		after = ms(retryAfter)
	}
	return []string{status, code, strconv.Itoa(calls), ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.Max), after}
}

// ms shows milliseconds with three digits that count.
func ms(v float64) string {
	digits := 3
	switch {
	case v >= 100:
		digits = 0
	case v >= 10:
		digits = 1
	case v >= 1:
		digits = 2
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + "ms"
}
