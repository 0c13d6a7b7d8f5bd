package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// makeLogs makes logs whose records have times of a few common milliseconds,
// one of them without any record.
func makeLogs(t *testing.T, sizes ...int) []Log {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var logs []Log
	for i, size := range sizes {
		path := filepath.Join(t.TempDir(), "audit.db")
		var ms atomic.Int64
		ms.Store(1_700_000_000_000)
		log, err := auditchain.Open(t.Context(), path, auditchain.Options{Now: func() time.Time { return time.UnixMilli(ms.Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		for range size {
			ms.Add(random.Int64N(3))
			if _, err := log.Append(t.Context(), auditchain.Record{Kind: auditchain.KindRPCCall}); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := auditchain.OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		logs = append(logs, Log{Source{Agent: fmt.Sprintf("agent-%d", i), DB: path}, r})
	}
	return logs
}

// The merged logs are what sorting all their records gives, from either end and
// with any limit.
func TestQueryMergesByTime(t *testing.T) {
	logs := makeLogs(t, 20, 0, 300, 7)
	var want []record
	for i, l := range logs {
		for entry, err := range l.Query(t.Context(), auditchain.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, record{log: i, agent: l.Agent, Entry: entry})
		}
	}
	slices.SortFunc(want, func(x, y record) int {
		return cmp.Or(x.Time.Compare(y.Time), strings.Compare(x.agent, y.agent), cmp.Compare(x.Seq, y.Seq))
	})
	name := func(r record) string { return fmt.Sprintf("%s/%d", r.agent, r.Seq) }
	for _, limit := range []int{0, 1, 5, 26, len(want) - 1, len(want), len(want) + 1} {
		kept := len(want)
		if limit > 0 {
			kept = min(limit, kept)
		}
		for order, expected := range map[auditchain.Order][]record{
			auditchain.OldestFirst: want[:kept], auditchain.NewestFirst: want[len(want)-kept:],
		} {
			got, err := collect(t.Context(), logs, auditchain.Filter{Limit: limit, Order: order})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(got, expected, func(x, y record) bool { return name(x) == name(y) }) {
				t.Errorf("limit %d, order %d: not the %d records that sorting gives", limit, order, kept)
			}
		}
	}
}

// Each order prints the same page in its own direction, as JSON whatever its
// size, and says so if there is more.
func TestQueryPages(t *testing.T) {
	logs := makeLogs(t, 9)
	for _, test := range []struct {
		order string
		limit int
		want  []int64
		says  string
	}{
		{orderTail, 3, []int64{7, 8, 9}, "--order newest --after 7"},
		{orderNewest, 3, []int64{9, 8, 7}, "--order newest --after 7"},
		{orderOldest, 3, []int64{1, 2, 3}, "--order oldest --after 3"},
		{orderTail, 9, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}, ""},
		{orderTail, 0, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}, ""},
		{orderNewest, 0, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1}, ""},
	} {
		for _, format := range []output.Format{output.JSON, output.JSONL} {
			var stdout, stderr bytes.Buffer
			env := &cli.Env{Stdout: &stdout, Stderr: &stderr, Format: format}
			filter := auditchain.Filter{Limit: test.limit, Order: auditchain.NewestFirst}
			if test.order == orderOldest {
				filter.Order = auditchain.OldestFirst
			}
			if err := writePage(t.Context(), env, logs, filter, test.order); err != nil {
				t.Fatal(err)
			}
			if got := seqs(t, format, stdout.Bytes()); !slices.Equal(got, test.want) {
				t.Errorf("order %q, limit %d, %s: records %v, want %v", test.order, test.limit, format, got, test.want)
			}
			if got := stderr.String(); (test.says == "") != (got == "") || !strings.Contains(got, test.says) {
				t.Errorf("order %q, limit %d: says %q, want %q", test.order, test.limit, got, test.says)
			}
		}
	}
}

// seqs reads the numbers of printed records.
func seqs(t *testing.T, format output.Format, text []byte) []int64 {
	t.Helper()
	type record struct{ Seq int64 }
	var records []record
	if format == output.JSON {
		if err := json.Unmarshal(text, &records); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	} else {
		for line := range bytes.Lines(text) {
			var r record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			records = append(records, r)
		}
	}
	var numbers []int64
	for _, r := range records {
		numbers = append(numbers, r.Seq)
	}
	return numbers
}

// collect returns the records that the filter selects in all logs, oldest first.
// With a limit, it keeps that many from the end where filter.Order begins.
func collect(ctx context.Context, logs []Log, filter auditchain.Filter) ([]record, error) {
	var found []record
	for r, err := range mergeLogs(ctx, logs, filter) {
		if err != nil {
			return nil, err
		}
		if found = append(found, r); len(found) == filter.Limit {
			break
		}
	}
	if filter.Order == auditchain.NewestFirst {
		slices.Reverse(found)
	}
	return found, nil
}
