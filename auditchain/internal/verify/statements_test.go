package verify_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// statements stands between a verification and its database. It sees each
// statement before it runs, and may put another in its place.
type statements struct {
	store.Querier
	change func(query string) string
}

func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.Querier.QueryContext(ctx, s.change(query), args...)
}

func (s *statements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return s.Querier.QueryRowContext(ctx, s.change(query), args...)
}

// openThrough opens a log whose statements go through change.
func openThrough(t *testing.T, path string, change func(query string) string) *store.DB {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path, store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	db := r.DB
	db.Querier = &statements{db.Querier, change}
	return &db
}

// broken returns the ways in which a statement can fail: before its first row, at
// a value that is none, and between two rows.
func broken(query string) map[string]string {
	const overflow = "abs(-9223372036854775808)" // SQLite computes it row by row, and fails
	all := map[string]string{"at once": "SELECT nothing FROM nowhere"}
	for column, middle := range map[string]string{"seq, NULL": "seq > 2 AND seq % 50 = 3", "position + 1": "position > 1"} {
		rest, ok := strings.CutPrefix(query, "SELECT "+column)
		if !ok {
			continue
		}
		name, others, _ := strings.Cut(column, ",")
		if others != "" {
			rest = "," + others + rest
		}
		all["at a value"] = "SELECT 'no number'" + rest
		all["between rows"] = "SELECT CASE WHEN " + middle + " THEN " + overflow + " ELSE " + name + " END" + rest
	}
	return all
}

// Whichever statement of a verification fails, there is no report: one that says
// less than the whole would pass for a clean log.
func TestEveryStatementThatFails(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	keys := audittest.PublicKeys(t, audittest.OpenReader(t, s.Path))
	s.Write(sidecar.CheckpointSuffix, storedNote(t, s, 503))
	cut := s.Copy(t)
	cut.SQL(`DELETE FROM records WHERE seq > 580`)
	for name, run := range map[string]func(db *store.DB) error{
		"all": func(db *store.DB) error {
			report, err := verify.Run(t.Context(), db, verify.Options{TrustedKeys: keys})
			return outcome(t, report, err)
		},
		"from a checkpoint": func(db *store.DB) error {
			report, err := verify.Run(t.Context(), db, verify.Options{TrustedKeys: keys, FromCheckpoint: true})
			return outcome(t, report, err)
		},
		"a log that was cut": func(db *store.DB) error {
			report, err := verify.Run(t.Context(), db, verify.Options{TrustedKeys: keys})
			return outcome(t, report, err)
		},
		"the first fault": func(db *store.DB) error {
			fault, err := verify.FirstFault(t.Context(), db, 6, 600)
			if fault != nil && err == nil {
				t.Errorf("got %v", fault)
			}
			return err
		},
		"an erasure": func(db *store.DB) error {
			_, err := verify.CheckErasure(t.Context(), db, 21, 302)
			return err
		},
		"an erasure that is not covered": func(db *store.DB) error {
			_, err := verify.CheckErasure(t.Context(), db, 30, 302)
			return err
		},
	} {
		path := s.Path
		if name == "a log that was cut" {
			path = cut.Path
		}
		var seen []string
		if err := run(openThrough(t, path, func(query string) string { seen = append(seen, query); return query })); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for at, query := range seen {
			for how, instead := range broken(query) {
				n := 0
				err := run(openThrough(t, path, func(query string) string {
					if n++; n == at+1 {
						return instead
					}
					return query
				}))
				if err == nil {
					t.Errorf("%s: statement %d fails %s, and there is no error: %s", name, at+1, how, query)
				}
			}
		}
		if len(seen) == 0 {
			t.Errorf("%s: no statement was seen", name)
		}
	}
}

// outcome is the error of a verification, which must not come with a report.
func outcome(t *testing.T, report *verify.Report, err error) error {
	t.Helper()
	if (report == nil) != (err != nil) {
		t.Errorf("report %+v with error %v", report, err)
	}
	return err
}

// storedNote returns the checkpoint that the database holds for a size.
func storedNote(t *testing.T, s *audittest.Scene, size int64) (note []byte) {
	t.Helper()
	if err := s.DB().QueryRow(`SELECT note FROM checkpoints WHERE size = ?`, size).Scan(&note); err != nil {
		t.Fatal(err)
	}
	return note
}

// An erasure that is made while the log is verified is authorised by a record that is
// appended meanwhile. It counts if the chain up to that record is sound and a genuine
// checkpoint covers it.
func TestErasureMadeMeanwhile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage string
		class  verify.Class // 0 if the log is sound
		seq    int64
	}{
		"unreadable":                          {``, 0, 0},
		"signed":                              {``, 0, 0},
		"unsigned":                            {`DELETE FROM checkpoints WHERE size > 20`, verify.ForgedErasure, 22},
		"under no checkpoint":                 {`UPDATE checkpoints SET note = 'hello' WHERE size > 20`, verify.CheckpointForged, 22},
		"under a checkpoint of fewer records": {`UPDATE checkpoints SET note = (SELECT note FROM checkpoints WHERE size = 20) WHERE size > 20`, verify.CheckpointForged, 22},
		"for another reason":                  {`UPDATE records SET body = replace(body, 'meanwhile', 'whenever') WHERE seq = 22`, verify.ContentAltered, 22},
		"after an altered record":             {`UPDATE records SET body = '{}' WHERE seq = 21`, verify.ContentAltered, 21},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := audittest.Open(t, auditchain.Options{CheckpointRecords: 10, Now: audittest.SteppedClock()})
			audittest.Fill(t, l, 20)
			if _, err := l.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			fifth := audittest.Get(t, l.Reader, 5)
			done := false
			db := openThrough(t, l.Path(), func(query string) string {
				// The range is known when the first records are read.
				if strings.HasPrefix(query, "SELECT seq, NULL") && !done {
					done = true
					audittest.Append(t, l, audittest.Violation(21))
					if _, err := l.Redact(t.Context(), auditchain.Filter{Correlation: fifth.Correlation}, "meanwhile"); err != nil {
						t.Error(err)
					}
					if test.damage != "" {
						audittest.SceneAt(t, l.Path()).SQL(test.damage)
					}
				}
				if name == "unreadable" && done && strings.HasPrefix(query, "SELECT max(coalesce") {
					return "SELECT nothing FROM nowhere"
				}
				return query
			})
			report, err := verify.Run(t.Context(), db, verify.Options{})
			if name == "unreadable" {
				if outcome(t, report, err) == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil || report.Last != 22 || report.Erased != 1 || report.OK() != (test.class == 0) {
				t.Fatalf("%+v, %v", report, err)
			}
			if test.class != 0 && (report.FaultCount != 1 || report.Faults[0].Class != test.class || report.Faults[0].Seq != test.seq) {
				t.Errorf("%v", report.Faults)
			}
		})
	}
}

// FromCheckpoint starts at the newest tree head that counts: signed by a trusted
// key, and of no more records than there are. Without any it starts at the
// beginning.
func TestWhereFromCheckpointStarts(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	stranger, err := checkpoint.GenerateKey(audittest.OpenReader(t, s.Path).Origin())
	if err != nil {
		t.Fatal(err)
	}
	signed := func(size int64) []byte {
		note, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: stranger.Name(), Size: size}, stranger.Signer())
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	stored := func(size int64) []byte { return storedNote(t, s, size) }
	for name, test := range map[string]struct {
		kept  [][]byte
		first int64
		class verify.Class // 0 if the log is sound
	}{
		"nothing kept":               {nil, 1, 0},
		"the newest":                 {[][]byte{stored(200), stored(503), stored(100)}, 504, 0},
		"all of the log":             {[][]byte{stored(600)}, 0, 0},
		"one of no records":          {[][]byte{signed(0)}, 1, verify.KeyUntrusted},
		"one of a stranger":          {[][]byte{stored(200), signed(300)}, 201, verify.KeyUntrusted},
		"only of strangers":          {[][]byte{signed(100), signed(300)}, 1, verify.KeyUntrusted},
		"one of more than there are": {[][]byte{stored(200), signed(601)}, 201, verify.KeyUntrusted},
		"one of as many":             {[][]byte{stored(200), signed(600)}, 201, verify.KeyUntrusted},
	} {
		copied := s.Copy(t)
		keys := audittest.PublicKeys(t, audittest.OpenReader(t, s.Path))
		copied.Write(sidecar.CheckpointSuffix, stored(100))
		if len(test.kept) == 0 {
			copied.Write(sidecar.CheckpointSuffix, signed(50))
			test.class = verify.KeyUntrusted
		}
		if name == "nothing kept" || name == "one of no records" || name == "only of strangers" {
			copied.Write(sidecar.CheckpointSuffix, signed(50))
		}
		report := audittest.VerifyPath(t, copied.Path, auditchain.VerifyOptions{TrustedKeys: keys, FromCheckpoint: true, Checkpoints: test.kept})
		if report.First != test.first || report.Last != 600 || report.OK() != (test.class == 0) || !report.OK() && report.Faults[0].Class != test.class {
			t.Errorf("%s: %+v", name, report)
		}
		if from := test.first; from > 0 && report.Records+report.Pruned != 601-from {
			t.Errorf("%s: %d records and %d pruned", name, report.Records, report.Pruned)
		}
	}
}
