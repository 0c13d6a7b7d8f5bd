package auditchain_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/store"
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
	record auditchain.Record
	done   chan error
}

func openBare(t testing.TB) *bareLog {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bare.db")
	db, err := sql.Open("sqlite", store.DataSource(path, "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, statement := range schemaOf(t) {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	l := &bareLog{db: db, queue: make(chan *bareRequest, auditchain.DefaultMaxPending), done: make(chan struct{})}
	go l.write()
	t.Cleanup(func() { close(l.queue); <-l.done; db.Close() })
	return l
}

// schemaOf returns the statements that make the tables of a log.
func schemaOf(t testing.TB) (statements []string) {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{})
	rows, err := audittest.SceneAt(t, l.Path()).DB().Query(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		statements = append(statements, text)
	}
	return statements
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
		for len(batch) < 1024 {
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

func (l *bareLog) Append(_ context.Context, r auditchain.Record) (int64, error) {
	c := &bareRequest{record: r, done: make(chan error, 1)}
	l.queue <- c
	return 0, <-c.done
}

type appender interface {
	Append(context.Context, auditchain.Record) (int64, error)
}

// Every benchmark here measures the bare driver and the log in turns, in short
// slices, so that what else the machine does hits both alike, and reports the
// speed of the log as a multiple of the bare driver's.

func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			bare, chain := openBare(b), audittest.Open(b, auditchain.Options{})
			slice := min(8000, 200*callers)
			var of [2]appendTimes
			for b.Loop() {
				of[0].run(b, bare, callers, slice)
				of[1].run(b, chain, callers, slice)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(of[0].rate(), "bare-rows/s")
			b.ReportMetric(of[1].rate(), "log-rows/s")
			b.ReportMetric(of[1].rate()/of[0].rate(), "speed-ratio")
			b.ReportMetric(float64(of[1].p99())/float64(of[0].p99()), "p99-ratio")
		})
	}
}

// appendTimes collects what a number of slices took.
type appendTimes struct {
	rows      int
	took      time.Duration
	latencies []time.Duration
}

func (a *appendTimes) rate() float64 { return float64(a.rows) / a.took.Seconds() }

func (a *appendTimes) p99() time.Duration {
	slices.Sort(a.latencies)
	return a.latencies[len(a.latencies)*99/100]
}

// run appends n records from a number of callers.
func (a *appendTimes) run(b *testing.B, l appender, callers, n int) {
	record := audittest.Violation(1)
	record.Tenant, record.Peer, record.Capability, record.Side = "acme", "agent://pr-reviewer", "review-pr", auditchain.SideRequest
	record.Correlation, record.Session = "018f3f7e-0000-7000-8000-000000000001", "session-1"
	var next atomic.Int64
	var wg sync.WaitGroup
	latencies := make([][]time.Duration, callers)
	begin := time.Now()
	for c := range callers {
		wg.Go(func() {
			for next.Add(1) <= int64(n) {
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
	a.took += time.Since(begin)
	a.rows += n
	a.latencies = append(a.latencies, slices.Concat(latencies...)...)
}

// benchRows is how many records the reading benchmarks have: AUDITCHAIN_BENCH_ROWS,
// or as many as are quickly made.
func benchRows(b *testing.B) int {
	text := os.Getenv("AUDITCHAIN_BENCH_ROWS")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// filledLog is a log of n typical records.
func filledLog(b *testing.B, n int) *auditchain.Log {
	b.Helper()
	l := audittest.Open(b, auditchain.Options{})
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 512 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := l.Append(context.Background(), audittest.Violation(int(i))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if _, err := l.Checkpoint(context.Background()); err != nil {
		b.Fatal(err)
	}
	return l
}

func BenchmarkRead(b *testing.B) {
	records := benchRows(b)
	l := filledLog(b, records)
	stats, err := l.Stats(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(stats.Bytes)/float64(records), "bytes/record")
	bare := audittest.SceneAt(b, l.Path()).DB()
	b.Run("verify", func(b *testing.B) {
		alternate(b, records, func() { bareScan(b, bare) }, func() {
			if report := audittest.Verify(b, l.Reader, auditchain.VerifyOptions{}); !report.OK() {
				b.Fatal(report)
			}
		})
	})
	b.Run("query", func(b *testing.B) {
		const page = 100
		alternate(b, page, func() { bareQuery(b, bare, page) }, func() {
			if n := len(audittest.Collect(b, l.Reader, auditchain.Filter{Session: "session-1", Order: auditchain.NewestFirst, Limit: page})); n != page {
				b.Fatal(n)
			}
		})
	})
}

// alternate times two ways to read the same number of rows.
func alternate(b *testing.B, rows int, bare, log func()) {
	var took [2]time.Duration
	n := 0
	for b.Loop() {
		for i, read := range []func(){bare, log} {
			start := time.Now()
			read()
			took[i] += time.Since(start)
		}
		n += rows
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n)/took[0].Seconds(), "bare-rows/s")
	b.ReportMetric(float64(n)/took[1].Seconds(), "log-rows/s")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "speed-ratio")
}

// bareScan reads every column of every record.
func bareScan(b *testing.B, db *sql.DB) {
	rows, err := db.Query(`SELECT seq, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, erased_by
		FROM records ORDER BY seq`)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var seq, ts int64
	var text [12]sql.RawBytes
	destinations := []any{&seq, &ts}
	for i := range text {
		destinations = append(destinations, &text[i])
	}
	for rows.Next() {
		if err := rows.Scan(destinations...); err != nil {
			b.Fatal(err)
		}
	}
}

// bareQuery reads the newest records of one session into values of their own.
func bareQuery(b *testing.B, db *sql.DB, page int) {
	rows, err := db.Query(`SELECT seq, ts, tenant, kind, peer, capability, side, correlation, session, body, hash, erased_by
		FROM records WHERE session = ? ORDER BY seq DESC LIMIT ?`, "session-1", page)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var seq, ts int64
		var tenant, kind string
		var columns [5]sql.NullString
		var body, hash []byte
		var erasedBy sql.NullInt64
		err := rows.Scan(&seq, &ts, &tenant, &kind, &columns[0], &columns[1], &columns[2], &columns[3], &columns[4], &body, &hash, &erasedBy)
		if err != nil {
			b.Fatal(err)
		}
	}
	if n != page {
		b.Fatal(n)
	}
}
