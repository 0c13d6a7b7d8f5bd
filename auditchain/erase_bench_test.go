package auditchain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// eraseLog is a log of n records of violations, which have rows of their own, or of calls,
// which are in packs. Their correlation ids are in no order, as those of foreign callers may
// be: agentd's own ascend with time.
func eraseLog(b *testing.B, kind auditchain.Kind, n int) *auditchain.Log {
	b.Helper()
	l := audittest.Open(b, auditchain.Options{})
	for i := 0; i < n; {
		var batch []auditchain.Record
		for range min(1000, n-i) {
			body, err := json.Marshal(map[string]any{
				"peerId": fmt.Sprintf("agent://p%d", i%5), "capabilityName": fmt.Sprintf("c%d", i%7), "sessionId": fmt.Sprintf("s%d", i%100),
				"correlationId": fmt.Sprintf("%016x", uint64(i)*0x9E3779B97F4A7C15), "latencyMs": i % 50, "role": "caller", "status": "ok",
			})
			if err != nil {
				b.Fatal(err)
			}
			batch = append(batch, auditchain.Record{Kind: kind, Body: body})
			i++
		}
		if _, err := l.AppendAll(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

// BenchmarkPrune prunes nine of ten records of a log, and of one a quarter as long, while four
// callers append, 100 records a second in sum, timed from when they were due. It reports the time
// for each record that goes, and how much longer that is than in the shorter log (1 is linear);
// the 99th percentiles of the appends beside it, and of those before it while nothing else
// happened; the longest append; and the share of the files that was given back.
func BenchmarkPrune(b *testing.B) {
	benchmarkErasure(b, func(l *auditchain.Log, before time.Time) (auditchain.Erasure, error) {
		return l.Prune(context.Background(), before, "benchmark")
	})
}

// BenchmarkRedact is BenchmarkPrune for a redaction.
func BenchmarkRedact(b *testing.B) {
	benchmarkErasure(b, func(l *auditchain.Log, before time.Time) (auditchain.Erasure, error) {
		return l.Redact(context.Background(), auditchain.Filter{Until: before}, "benchmark")
	})
}

func benchmarkErasure(b *testing.B, erase func(*auditchain.Log, time.Time) (auditchain.Erasure, error)) {
	for _, kind := range []auditchain.Kind{auditchain.KindRPCCall, auditchain.KindSchemaViolation} {
		b.Run(string(kind), func(b *testing.B) {
			var perRecord [2]float64
			var shrunk float64
			var alone, during []time.Duration
			for b.Loop() {
				for i, n := range []int{benchRows(b) / 4, benchRows(b)} {
					l := eraseLog(b, kind, n)
					size := fileBytes(b, l)
					before := audittest.Get(b, l.Reader, int64(n*9/10)).Time
					alone = append(alone, appendWhile(b, l, func() { time.Sleep(time.Second) })...)
					during = append(during, appendWhile(b, l, func() {
						start := time.Now()
						done, err := erase(l, before)
						if err != nil || done.Count < int64(n/2) {
							b.Error(done, err)
						}
						perRecord[i] = float64(time.Since(start).Nanoseconds()) / float64(done.Count)
					})...)
					shrunk = 1 - fileBytes(b, l)/size
					audittest.Close(b, l)
				}
			}
			slices.Sort(alone)
			slices.Sort(during)
			p99 := func(all []time.Duration) float64 { return float64(all[len(all)*99/100].Microseconds()) / 1000 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(perRecord[1]/1000, "µs/record")
			b.ReportMetric(perRecord[1]/perRecord[0], "growth-ratio")
			b.ReportMetric(shrunk, "shrunk")
			b.ReportMetric(p99(alone), "p99-alone-ms")
			b.ReportMetric(p99(during), "p99-during-ms")
			b.ReportMetric(float64(during[len(during)-1].Milliseconds()), "longest-ms")
		})
	}
}

// fileBytes returns the size of a database and its write-ahead log.
func fileBytes(b *testing.B, l *auditchain.Log) (size float64) {
	b.Helper()
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(l.Path() + suffix)
		if err != nil {
			b.Fatal(err)
		}
		size += float64(info.Size())
	}
	return size
}

// appendWhile appends at a steady rate until work returns, and returns how long each append
// took from when it was due.
func appendWhile(b *testing.B, l *auditchain.Log, work func()) (all []time.Duration) {
	b.Helper()
	const callers, interval = 4, 40 * time.Millisecond
	over := make(chan struct{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for due := time.Now(); ; due = due.Add(interval) {
				select {
				case <-over:
					return
				case <-time.After(time.Until(due)):
				}
				if _, err := l.Append(context.Background(), audittest.Violation(1)); err != nil {
					b.Error(err)
					return
				}
				took := time.Since(due)
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}
	work()
	close(over)
	wg.Wait()
	return all
}
