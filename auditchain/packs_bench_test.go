package auditchain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// benchBatch is how many records of calls share a transaction in the logs of the benchmarks.
const benchBatch = 200

// callsLog opens a log that writeCalls has written. With AUDITCHAIN_BENCH_LOGS it is kept in that
// folder, and written only if it is not there.
func callsLog(b *testing.B, count int) *auditchain.Reader {
	b.Helper()
	folder := os.Getenv("AUDITCHAIN_BENCH_LOGS")
	if folder == "" {
		folder = b.TempDir()
	}
	folder = filepath.Join(folder, fmt.Sprintf("calls-%d", count))
	path := filepath.Join(folder, "audit.db")
	if _, err := os.Stat(path); err != nil {
		unfinished := folder + ".unfinished"
		if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(unfinished, 0o700)); err != nil {
			b.Fatal(err)
		}
		writeCalls(b, filepath.Join(unfinished, "audit.db"), count)
		if err := os.Rename(unfinished, folder); err != nil {
			b.Fatal(err)
		}
	}
	return audittest.OpenReader(b, path)
}

// writeCalls writes a log of count records of calls of 40 peers and 20 capabilities, each of a
// correlation id of its own, ten of a session, one millisecond for each ten. One in a thousand is
// of tenant rare, and there are some of other kinds, with rows.
func writeCalls(b *testing.B, path string, count int) {
	b.Helper()
	now := time.UnixMilli(audittest.ClockStart)
	l := audittest.OpenAt(b, path, auditchain.Options{Now: func() time.Time { return now }})
	records := make([]auditchain.Record, benchBatch)
	for first := 0; first < count; first += benchBatch {
		for i := range records {
			n := first + i
			records[i] = auditchain.Record{Kind: auditchain.KindRPCCall, Body: json.RawMessage(fmt.Sprintf(
				`{"attempts":1,"capabilityName":"capability-%d","correlationId":"%s","latencyMs":1.5,"mode":"sync","payloadSha256":"%064x","peerId":"agent://peer-%d","role":"caller","sessionId":"s-%d","startMs":%d,"status":"ok","traceId":"%032x"}`,
				n/3%20, audittest.Correlation(n), n, n%40, n/10, audittest.ClockStart+n/10, n))}
			if n%1000 == 0 {
				records[i].Tenant = "rare"
			}
		}
		now = now.Add(benchBatch / 10 * time.Millisecond)
		if n, err := l.AppendAll(b.Context(), records); err != nil || n != len(records) {
			b.Fatal(n, err)
		}
		if first%(100*benchBatch) == 0 {
			audittest.Append(b, l, audittest.Violation(first))
		}
	}
	audittest.Close(b, l)
}

// A condition is one that `agentd audit query` has.
type condition struct {
	name string
	set  func(*auditchain.Filter)
}

// conditionsOf returns every condition of a query, for a log of count records as callsLog makes it.
func conditionsOf(count int) []condition {
	at := func(n int) time.Time { return time.UnixMilli(audittest.ClockStart + int64(n/10)) }
	return []condition{
		{"tenant", func(f *auditchain.Filter) { f.Tenant = "default" }},
		{"rare-tenant", func(f *auditchain.Filter) { f.Tenant = "rare" }},
		{"kind", func(f *auditchain.Filter) { f.Kinds = []auditchain.Kind{auditchain.KindRPCCall} }},
		{"rare-kind", func(f *auditchain.Filter) { f.Kinds = []auditchain.Kind{auditchain.KindSchemaViolation} }},
		{"not-kind", func(f *auditchain.Filter) { f.NotKinds = []auditchain.Kind{auditchain.KindPayloadCapture} }},
		{"peer", func(f *auditchain.Filter) { f.Peer = "agent://peer-7" }},
		{"capability", func(f *auditchain.Filter) { f.Capability = "capability-3" }},
		{"side", func(f *auditchain.Filter) { f.Side = auditchain.SideRequest }},
		{"correlation", func(f *auditchain.Filter) { f.Correlation = audittest.Correlation(count / 2) }},
		{"session", func(f *auditchain.Filter) { f.Session = fmt.Sprintf("s-%d", count/20) }},
		{"since", func(f *auditchain.Filter) { f.Since = at(count / 10) }},
		{"until", func(f *auditchain.Filter) { f.Until = at(count * 9 / 10) }},
		{"text", func(f *auditchain.Filter) { f.Text = `"status":"ok"` }},
		{"after", func(f *auditchain.Filter) { f.After = int64(count / 2) }},
	}
}

// BenchmarkConditions measures a page of every condition and of every pair of conditions beside
// one without any, in turns: the 100 newest records, of AUDITCHAIN_BENCH_ROWS. It reports the
// fastest of five pages, and how many times as long as without conditions and as the slower of
// the two by itself that takes; and how many records there are.
func BenchmarkConditions(b *testing.B) {
	count := benchRows(b)
	l := callsLog(b, count)
	conditions := conditionsOf(count)
	single := map[string]float64{}
	for i, one := range conditions {
		for k, other := range conditions[i:] {
			name := one.name
			if k > 0 {
				name += "+" + other.name
			}
			b.Run(name, func(b *testing.B) {
				newest := auditchain.Filter{Order: auditchain.NewestFirst, Limit: 100}
				f := newest
				one.set(&f)
				other.set(&f)
				var bare, took float64
				var found int
				for b.Loop() {
					bare, _ = fastestPage(b, l, newest)
					took, found = fastestPage(b, l, f)
				}
				slower := took
				if k == 0 {
					single[name] = took
				} else {
					for _, c := range []condition{one, other} {
						if single[c.name] == 0 {
							f := newest
							c.set(&f)
							single[c.name], _ = fastestPage(b, l, f)
						}
					}
					slower = max(single[one.name], single[other.name])
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(took/1e6, "ms/page")
				b.ReportMetric(took/bare, "to-bare")
				b.ReportMetric(took/slower, "to-single")
				b.ReportMetric(float64(found), "records")
			})
		}
	}
}

// fastestPage returns the fastest of five reads, or of those that two seconds are enough for, in
// nanoseconds, and how many records they find.
func fastestPage(b *testing.B, l *auditchain.Reader, f auditchain.Filter) (fastest float64, found int) {
	b.Helper()
	var times []time.Duration
	for begin := time.Now(); len(times) == 0 || len(times) < 5 && time.Since(begin) < 2*time.Second; {
		start := time.Now()
		found = len(audittest.Collect(b, l, f))
		times = append(times, time.Since(start))
	}
	return float64(slices.Min(times)), found
}

// BenchmarkTimeBounds measures a page of every condition and every pair of conditions, with a
// time bound and without, in turns, and reports how many times as long the page takes that has
// the bound: the worst of all, and their median. AUDITCHAIN_BENCH_ROWS sets the size of the log.
func BenchmarkTimeBounds(b *testing.B) {
	count := benchRows(b)
	l := callsLog(b, count)
	at := func(n int) time.Time { return time.UnixMilli(audittest.ClockStart + int64(n/10)) }
	conditions := []struct {
		name string
		set  func(*auditchain.Filter)
	}{
		{"", func(*auditchain.Filter) {}},
		{"tenant", func(f *auditchain.Filter) { f.Tenant = "default" }},
		{"rare", func(f *auditchain.Filter) { f.Tenant = "rare" }},
		{"kind", func(f *auditchain.Filter) { f.Kinds = []auditchain.Kind{auditchain.KindRPCCall} }},
		{"peer", func(f *auditchain.Filter) { f.Peer = "agent://peer-7" }},
		{"capability", func(f *auditchain.Filter) { f.Capability = "capability-3" }},
		{"side", func(f *auditchain.Filter) { f.Side = auditchain.SideRequest }},
		{"correlation", func(f *auditchain.Filter) { f.Correlation = audittest.Correlation(count / 2) }},
		{"session", func(f *auditchain.Filter) { f.Session = fmt.Sprintf("s-%d", count/20) }},
	}
	bounds := []func(*auditchain.Filter){
		func(f *auditchain.Filter) { f.Since = at(count / 10) },
		func(f *auditchain.Filter) { f.Until = at(count * 9 / 10) },
		func(f *auditchain.Filter) { f.Since, f.Until = at(count/10), at(count*9/10) },
	}
	page := func(f auditchain.Filter) float64 {
		fastest, _ := fastestPage(b, l, f)
		return fastest
	}
	for i, one := range conditions {
		for _, other := range conditions[i:] {
			if one.name == "" && other.name == "" || one.name == other.name || one.name == "tenant" && other.name == "rare" {
				continue
			}
			b.Run(one.name+"+"+other.name, func(b *testing.B) {
				f := auditchain.Filter{Order: auditchain.NewestFirst, Limit: 100}
				one.set(&f)
				other.set(&f)
				var worst, bare float64
				for b.Loop() {
					bare = page(f)
					for _, bound := range bounds {
						bounded := f
						bound(&bounded)
						worst = max(worst, page(bounded)/bare)
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(bare/1e6, "ms/page")
				b.ReportMetric(worst, "worst-ratio")
			})
		}
	}
}
