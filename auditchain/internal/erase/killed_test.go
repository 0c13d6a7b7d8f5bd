package erase_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/erase"
	"github.com/agentd/agentd/auditchain/internal/query"
)

// eraseChild, in the environment, makes the test binary a process that erases from a log
// until a statement ends it: the log's path, what to do, the statement, and how many of
// them come before.
const eraseChild = "AUDITCHAIN_ERASE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(eraseChild) != "" {
		if err := runEraseChild(); err != nil {
			fmt.Println("error", err)
		}
		return
	}
	os.Exit(m.Run())
}

// killedRecords is the number of records of [killedLog], of which erasedRecords are erased:
// more than a start completes at once.
const killedRecords, erasedRecords = 4000, 3500

func runEraseChild() error {
	var skip int
	var before int64
	verb, rest, _ := strings.Cut(os.Getenv(eraseChild), "|")
	path, rest, _ := strings.Cut(rest, "|")
	numbers, statement, _ := strings.Cut(rest, "|")
	if _, err := fmt.Sscan(numbers, &skip, &before); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	disk := &audittest.Disk{Strike: func() {
		_ = self.Kill() // as kill -9
		select {}
	}}
	ctx := context.Background()
	w, _, err := chain.Open(ctx, path, chain.Options{CheckpointRecords: 1000, Now: audittest.SteppedClock()}, disk.Connect)
	if err != nil {
		return err
	}
	disk.FailNext(statement, skip, false)
	e := erase.New(&w.DB().DB, func(_ context.Context, step func(*chain.Writer) error) error { return step(w) }, nil)
	if verb == "prune" {
		_, err = e.Prune(ctx, time.UnixMilli(before), "retention")
	} else {
		_, err = e.Redact(ctx, query.Filter{Until: time.UnixMilli(before)}, "subject request")
	}
	return err
}

// killedBefore is the time of the first record that stays.
func killedBefore(t *testing.T, path string) time.Time {
	t.Helper()
	return audittest.Get(t, audittest.OpenReader(t, path), erasedRecords+1).Time
}

// killedLog makes the log that the processes erase from: in turns 250 records in packs, and
// 250 that have rows.
func killedLog(t *testing.T) string {
	t.Helper()
	now := int64(audittest.ClockStart)
	l := audittest.Open(t, auditchain.Options{Now: func() time.Time { now++; return time.UnixMilli(now) }}) // of the writer alone
	records := make([]auditchain.Record, 500)
	for i := 0; i < killedRecords; i += len(records) {
		for k := range records {
			records[k] = audittest.Violation(i + k)
			if k < len(records)/2 {
				records[k] = auditchain.Record{Kind: auditchain.KindRPCCall, Body: fmt.Appendf(nil, `{"correlationId":"call-%d"}`, i+k)}
			}
		}
		if _, err := l.AppendAll(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	audittest.Close(t, l)
	return l.Path()
}

// killAt runs a process that is killed in place of a statement, on a copy of a log, and
// returns the copy.
func killAt(t *testing.T, path, verb, statement string, skip int) string {
	t.Helper()
	before := killedBefore(t, path).UnixMilli()
	path = audittest.CopyLog(t, path)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), eraseChild+"="+fmt.Sprintf("%s|%s|%d %d|%s", verb, path, skip, before, statement))
	out, err := child.CombinedOutput()
	if err == nil || len(out) > 0 {
		t.Fatalf("the process was not killed at %s: %v, %s", statement, err, out)
	}
	return path
}

// A process that is killed in the middle of an erasure leaves a log that verifies, and the
// next start goes on beside the appends.
func TestKilledEraserGoesOn(t *testing.T) {
	t.Parallel()
	path := killedLog(t)
	for _, test := range []struct {
		verb, statement string
		skip            int
	}{
		{"prune", "INSERT OR REPLACE INTO tree", 0},
		{"prune", "DELETE FROM records", 1},
		{"prune", "COMMIT", 3},
		{"prune", "DELETE FROM packs", 3},
		{"prune", "PRAGMA incremental_vacuum", 0},
		{"redact", "UPDATE records", 1},
		{"redact", "DELETE FROM packs", 3},
		{"redact", "COMMIT", 3},
		{"redact", "PRAGMA wal_checkpoint(TRUNCATE)", 0},
	} {
		t.Run(test.verb+" "+test.statement, func(t *testing.T) {
			t.Parallel()
			path := killAt(t, path, test.verb, test.statement, test.skip)
			report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{})
			if !report.OK() {
				t.Fatalf("as the kill left it: %+v", report)
			}
			t.Logf("%d pruned, %d erased", report.Pruned, report.Erased)
			l := audittest.OpenAt(t, path, auditchain.Options{Now: audittest.SteppedClock()})
			complete := strings.HasPrefix(test.statement, "PRAGMA")
			most := test.verb != "prune" || test.statement != "DELETE FROM packs" // are left: packs go last
			if r := l.Recovery(); r.Resuming != (!complete && most) || complete != (r.Resumed == 0) {
				t.Errorf("recovery %+v", r)
			}
			audittest.Fill(t, l, 10) // nobody waits for the rest
			// Another erasure has its turn after it.
			if done, err := l.Prune(t.Context(), time.UnixMilli(1), "nothing"); err != nil || done.Count != 0 {
				t.Fatalf("%+v, %v", done, err)
			}
			report = audittest.Verify(t, l.Reader, auditchain.VerifyOptions{})
			if !report.OK() || report.Pruned+report.Erased != erasedRecords {
				t.Errorf("%+v", report)
			}
			if s, err := l.Status(t.Context()); err != nil || s.Erasure != nil {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// Who edits the database between two steps of an erasure neither widens it nor hides
// anything: the log does not open, or its verification finds the edit, also after the
// erasure has gone on.
func TestEditsBetweenTheSteps(t *testing.T) {
	t.Parallel()
	path := killedLog(t)
	pruning := killAt(t, path, "prune", "DELETE FROM records", 1)
	redacting := killAt(t, path, "redact", "UPDATE records", 1)
	const authority = killedRecords + 1
	for name, test := range map[string]struct {
		path, sql string
		opens     bool // the log opens, and verification finds the edit
	}{
		"a wider pruning":                     {pruning, fmt.Sprintf(`UPDATE records SET body = replace(body, '"through":', '"through":1') WHERE seq = %d`, authority), false},
		"a later pruning":                     {pruning, fmt.Sprintf(`INSERT INTO records (seq, ts, tenant, kind, body, salt, digest, hash) SELECT seq + 1, ts, tenant, kind, body, salt, digest, hash FROM records WHERE seq = %d`, authority), false},
		"no pruning any more":                 {pruning, fmt.Sprintf(`DELETE FROM records WHERE seq = %d`, authority), false},
		"a hash that goes next":               {pruning, `UPDATE records SET hash = zeroblob(32) WHERE seq = 3400`, true},
		"the hash of one that has gone":       {pruning, `UPDATE tree SET hash = zeroblob(32) WHERE level = 0 AND position = 299`, true},
		"one that has gone without its hash":  {pruning, `DELETE FROM tree WHERE level = 0 AND position = 299`, true},
		"one that goes next, without a trace": {pruning, `DELETE FROM records WHERE seq = 3400`, true},
		"one that stays, without a trace":     {pruning, `DELETE FROM records WHERE seq = 3900`, true},
		"one that stays, and its hash kept":   {pruning, `INSERT INTO tree SELECT 0, seq - 1, hash FROM records WHERE seq = 3900; DELETE FROM records WHERE seq = 3900`, true},
		"a wider redaction":                   {redacting, fmt.Sprintf(`UPDATE records SET body = replace(body, ']]', '0]]') WHERE seq = %d`, authority), false},
		"one erased that the redaction lacks": {redacting, fmt.Sprintf(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = %d WHERE seq = 3900`, authority), true},
		"a text that goes next":               {redacting, `UPDATE records SET kind = 'rpc_call' WHERE seq = 3400`, true},
		"another text in one that stays":      {redacting, `UPDATE records SET body = '{}' WHERE seq = 3900`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene := audittest.SceneAt(t, audittest.CopyLog(t, test.path))
			scene.SQL(test.sql)
			l, err := auditchain.Open(t.Context(), scene.Path, auditchain.Options{Now: audittest.SteppedClock()})
			if !test.opens {
				if code := auditchain.CodeOf(err); code != auditchain.CodeTampered && code != auditchain.CodeRollback {
					t.Errorf("opens: %v", err)
				}
				return
			}
			if err != nil {
				if auditchain.CodeOf(err) != auditchain.CodeTampered {
					t.Error(err)
				}
				return // it was found even sooner
			}
			_, _ = l.Prune(t.Context(), time.UnixMilli(1), "nothing") // waits for the rest
			if report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}); report.OK() {
				t.Errorf("not found: %+v", report)
			}
			audittest.Close(t, l)
		})
	}
}
