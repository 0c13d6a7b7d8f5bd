package metrics

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

func known() Known {
	return Known{
		Served: []string{"review", "merge"},
		Caller: func(a envelope.Address) bool { return a == "agent://boss" || a == "agent://peer" },
		Peer:   func(a envelope.Address) bool { return a == "agent://peer" },
		Offers: func(a envelope.Address, c string) bool { return a == "agent://peer" && c == "lint" },
	}
}

func callee(from envelope.Address, capability string, code rpc.Code) *rpc.CallRecord {
	return &rpc.CallRecord{Role: rpc.RoleCallee, Peer: from, Capability: capability, Code: code, Status: code.Status(), Latency: 3 * time.Millisecond}
}

// scrape returns what a scraper gets of an agent that is not ready, with OpenMetrics.
func scrape(t testing.TB, calls *Calls) string {
	t.Helper()
	h, err := NewHandler(slog.New(slog.DiscardHandler), Process{Agents: []Agent{{
		ID: "a", Calls: calls, Audit: &Audit{}, Ready: func() error { return io.EOF },
		Status: func() (s control.Status, ok bool) { return s, false },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// value returns the value of a series, or "" where there is none.
func value(text, series string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, _, _ := strings.Cut(rest, " ")
			return v
		}
	}
	return ""
}

// Each call moves one counter and one histogram, at its own end.
func TestCallsAreCounted(t *testing.T) {
	c := NewCalls()
	c.Know(known())
	c.Observe(callee("agent://boss", "review", 0))
	c.Observe(callee("agent://boss", "review", 0))
	c.Observe(callee("agent://boss", "review", rpc.CodeHandlerError))
	c.Observe(callee("agent://boss", "nonsense", rpc.CodeNoCapability))
	c.Observe(&rpc.CallRecord{
		Role: rpc.RoleCaller, Peer: "agent://peer", Capability: "lint", Latency: 2 * time.Second, Retried: []rpc.Code{rpc.CodeRateLimited, rpc.CodeBusy},
		Sampled: true, TraceID: "0af7651916cd43dd8448eb211c80319c", Start: time.Now(),
	})
	text := scrape(t, c)
	for series, want := range map[string]string{
		`agentd_calls_total{agent="a",capability="review",code="",peer="agent://boss",role="callee",status="ok"}`:                                                      "2.0",
		`agentd_calls_total{agent="a",capability="review",code="HANDLER_ERROR",peer="agent://boss",role="callee",status="error"}`:                                      "1.0",
		`agentd_calls_total{agent="a",capability="other",code="EAGENTRPC_NO_CAPABILITY",peer="agent://boss",role="callee",status="error"}`:                             "1.0",
		`agentd_call_retries_total{agent="a",capability="lint",peer="agent://peer"}`:                                                                                   "2.0",
		`agentd_rate_limited_total{agent="a",capability="lint",peer="agent://peer",role="caller"}`:                                                                     "1.0",
		`rpc_server_call_duration_seconds_count{agent="a",peer="agent://boss",rpc_method="review",rpc_response_status_code="ok",rpc_system_name="agentd"}`:             "2",
		`rpc_server_call_duration_seconds_bucket{agent="a",peer="agent://boss",rpc_method="review",rpc_response_status_code="ok",rpc_system_name="agentd",le="0.005"}`: "2",
		`rpc_client_call_duration_seconds_sum{agent="a",peer="agent://peer",rpc_method="lint",rpc_response_status_code="ok",rpc_system_name="agentd"}`:                 "2.0",
		`rpc_client_call_duration_seconds_bucket{agent="a",peer="agent://peer",rpc_method="lint",rpc_response_status_code="ok",rpc_system_name="agentd",le="1.0"}`:     "0",
		`agentd_ready{agent="a"}`: "0.0", `agentd_condition{agent="a",name="audit-log"}`: "0.0",
	} {
		if got := value(text, series); got != want {
			t.Errorf("%s is %q, want %s", series, got, want)
		}
	}
	if !strings.Contains(text, `le="2.5"} 1 # {trace_id="0af7651916cd43dd8448eb211c80319c"} 2.0 `) {
		t.Error("the bucket of the sampled call has no exemplar")
	}
	if got := c.Served("review"); got != (Served{Requests: 3, Errors: 1, Busy: 9 * time.Millisecond, LastError: "HANDLER_ERROR"}) || c.Total() != (Served{Requests: 3, Errors: 1, Busy: 9 * time.Millisecond}) {
		t.Errorf("status has %+v, %+v", got, c.Total())
	}
}

// What strangers choose makes no series, at either end.
func TestStrangersMakeNoSeries(t *testing.T) {
	c := NewCalls()
	c.Know(known())
	c.Observe(callee("agent://boss", "review", 0))
	before := strings.Count(scrape(t, c), "\n")
	for i := range 10_000 {
		name := fmt.Sprintf("n%d\"},x{\n", i)
		c.Observe(callee(envelope.Address("agent://"+name), name, rpc.CodeNoCapability))
		c.Observe(callee(envelope.Address("agent://"+name), "review", rpc.CodeDenied))
		c.Observe(callee("agent://boss", name, rpc.CodeNoCapability))
		c.Observe(callee("agent://boss", "review", rpc.CodeAuthFailed)) // says so, and is not
		c.Observe(&rpc.CallRecord{Role: rpc.RoleCaller, Peer: envelope.Address(name), Capability: "lint", Code: rpc.CodeNoPeer})
		c.Observe(&rpc.CallRecord{Role: rpc.RoleCaller, Peer: "agent://peer", Capability: name, Code: rpc.CodeNoCapability})
	}
	text := scrape(t, c)
	if n := strings.Count(text, "\n") - before; n > 200 {
		t.Errorf("%d more lines", n)
	}
	const denied = `agentd_calls_total{agent="a",capability="review",code="EAGENTRPC_DENIED",peer="other",role="callee",status="error"}`
	if value(text, denied) != "10000.0" || strings.Contains(text, "n17") {
		t.Error("strangers are not counted together")
	}
}

// A reload ends the series of what is gone. The others go on, and so does the status.
func TestReloadKeepsCounts(t *testing.T) {
	c := NewCalls()
	c.Know(known())
	c.Observe(callee("agent://boss", "review", 0))
	c.Observe(callee("agent://peer", "review", 0))
	next := known()
	next.Served = []string{"review"}
	next.Caller = func(a envelope.Address) bool { return a == "agent://peer" }
	c.Know(next)
	c.Observe(callee("agent://peer", "review", 0))
	text := scrape(t, c)
	if strings.Contains(text, "agent://boss") || c.Serves("merge") || !c.Serves("review") {
		t.Error("the series of a caller that is gone goes on")
	}
	if got := value(text, `agentd_calls_total{agent="a",capability="review",code="",peer="agent://peer",role="callee",status="ok"}`); got != "2.0" {
		t.Errorf("the others count %s", got)
	}
	if got := c.Total().Requests; got != 3 {
		t.Errorf("status counts %d", got)
	}
}

// Every code has a place of its own, and every status one of its histograms.
func TestCodesHavePlaces(t *testing.T) {
	for _, code := range rpc.Codes() {
		if code >= codes || statusAt(statusIndex(code)) != code.Status() {
			t.Errorf("%s (%d) is counted as %s", code, code, statusAt(statusIndex(code)))
		}
	}
}

// A native bucket holds what Prometheus takes it to hold: values above the bound before, up to its
// own.
func TestNativeBuckets(t *testing.T) {
	for _, d := range []time.Duration{time.Microsecond, 999 * time.Microsecond, time.Millisecond, 31 * time.Millisecond, time.Second, 1024 * time.Second, 1025 * time.Second} {
		v := d.Seconds()
		key := float64(nativeIndex(v) + leastNative)
		if low, high := math.Exp2((key-1)/perOctave), math.Exp2(key/perOctave); v <= low*(1-1e-12) || v > high*(1+1e-12) {
			t.Errorf("%s is in the bucket from %g to %g", d, low, high)
		}
	}
	var l latency
	for _, d := range []time.Duration{-1, 0, 1, time.Millisecond, time.Millisecond, time.Hour, 1000 * time.Hour} {
		l.observe(d)
	}
	h := l.read()
	var count, n int64
	for _, delta := range h.GetPositiveDelta() {
		n += delta
		count += n
	}
	if count != 7 || h.GetSampleCount() != 7 || len(h.GetPositiveSpan()) != 3 || h.GetPositiveSpan()[0].GetOffset() != leastNative {
		t.Errorf("%d values in %v", count, h)
	}
}

// Counting costs no memory.
func TestObserveAllocatesNothing(t *testing.T) {
	c := NewCalls()
	c.Know(known())
	r := callee("agent://boss", "review", 0)
	stranger := callee("agent://nobody", "nothing", rpc.CodeNoCapability)
	c.Observe(r)
	c.Observe(stranger)
	if n := testing.AllocsPerRun(1000, func() { c.Observe(r); c.Observe(stranger) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	c := NewCalls()
	c.Know(known())
	r := callee("agent://boss", "review", 0)
	r.Sampled, r.TraceID, r.Start = true, "0af7651916cd43dd8448eb211c80319c", time.Now()
	b.ReportAllocs()
	for b.Loop() {
		r.Start = r.Start.Add(time.Microsecond)
		c.Observe(r)
	}
}

// What a histogram adds to each call.
func BenchmarkLatency(b *testing.B) {
	var l latency
	b.ReportAllocs()
	for b.Loop() {
		l.observe(1234567)
	}
}
