package auditchain

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// A bareLog is what the driver alone can do: the same rows into the same table
// with the same indexes, in group commits, without canonical form, salt, hash,
// tree and signature.
type bareLog struct {
	db    *sql.DB
	queue chan *bareRequest
	done  chan struct{}
}

type bareRequest struct {
	record Record
	done   chan error
}

func openBare(t testing.TB) *bareLog {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bare.db")
	db, err := sql.Open("sqlite", dataSource(path, "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, step := range migrations() {
		for _, statement := range step {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := &bareLog{db: db, queue: make(chan *bareRequest, DefaultMaxPending), done: make(chan struct{})}
	go l.write()
	t.Cleanup(func() { close(l.queue); <-l.done; db.Close() })
	return l
}

func (l *bareLog) write() {
	defer close(l.done)
	insert, err := l.db.Prepare(`INSERT INTO records
		(seq, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		panic(err)
	}
	var seq int64
	for r := range l.queue {
		batch := []*bareRequest{r}
		for len(batch) < maxBatch {
			select {
			case r, ok := <-l.queue:
				if ok {
					batch = append(batch, r)
					continue
				}
			default:
			}
			break
		}
		tx, err := l.db.Begin()
		stmt := tx.Stmt(insert)
		for _, r := range batch {
			seq++
			var blob [32]byte
			c := &r.record
			if err == nil {
				_, err = stmt.Exec(seq, time.Now().UnixMilli(), c.Tenant, string(c.Kind), c.Peer, c.Capability, string(c.Side),
					c.Correlation, c.Session, string(c.Body), blob[:16], blob[:], blob[:])
			}
		}
		if err == nil {
			err = tx.Commit()
		}
		for _, r := range batch {
			r.done <- err
		}
	}
}

func (l *bareLog) Append(_ context.Context, r Record) (int64, error) {
	c := &bareRequest{record: r, done: make(chan error, 1)}
	l.queue <- c
	return 0, <-c.done
}

type appender interface {
	Append(context.Context, Record) (int64, error)
}

func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d/bare", callers), func(b *testing.B) { benchmarkAppend(b, openBare(b), callers) })
		b.Run(fmt.Sprintf("callers=%d/chain", callers), func(b *testing.B) { benchmarkAppend(b, openLog(b, Options{}), callers) })
	}
}

func benchmarkAppend(b *testing.B, l appender, callers int) {
	record := violation(1)
	record.Tenant, record.Peer, record.Capability, record.Side = "acme", "agent://pr-reviewer", "review-pr", SideRequest
	record.Correlation, record.Session = "018f3f7e-0000-7000-8000-000000000001", "session-1"
	var next atomic.Int64
	var wg sync.WaitGroup
	latencies := make([][]time.Duration, callers)
	b.ResetTimer()
	for c := range callers {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				start := time.Now()
				if _, err := l.Append(context.Background(), record); err != nil {
					b.Error(err)
					return
				}
				latencies[c] = append(latencies[c], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}
