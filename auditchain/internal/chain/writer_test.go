package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

func options() chain.Options {
	return chain.Options{Name: "test", CheckpointRecords: 1000, Now: time.Now}
}

// openWriter opens a writer, to be closed when the test ends.
func openWriter(t testing.TB, path string, o chain.Options, connect store.Connect) (*chain.Writer, chain.Found) {
	t.Helper()
	w, found, err := chain.Open(context.Background(), path, o, connect)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, found
}

// appendN appends n records in one transaction.
func appendN(w *chain.Writer, n int) error {
	batch := make([]*record.Prepared, n)
	for i := range batch {
		r := audittest.Violation(i)
		batch[i] = &record.Prepared{}
		if err := batch[i].Prepare(&r); err != nil {
			return err
		}
	}
	return w.Append(slices.Values(batch))
}

func mustAppend(t testing.TB, w *chain.Writer, n int) {
	t.Helper()
	if err := appendN(w, n); err != nil {
		t.Fatal(err)
	}
}

func TestDiskErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		statement string
		after     bool
		kept      bool // whether the failed record is in the file afterwards
	}{
		{"begin fails", "BEGIN", false, false},
		{"insert fails", "INSERT INTO records", false, false},
		{"insert fails half-way", "INSERT INTO records", true, false},
		{"commit fails", "COMMIT", false, false},
		{"commit fails but is on disk", "COMMIT", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			disk := &audittest.Disk{}
			w, _ := openWriter(t, path, options(), disk.Connect)
			mustAppend(t, w, 1) // signed at once
			mustAppend(t, w, 19)
			disk.FailNext(test.statement, 0, test.after)
			err := appendN(w, 1)
			if !errors.Is(err, audittest.ErrDisk) {
				t.Errorf("the error does not name its cause: %v", err)
			}
			audittest.WantCode(t, err, auditchain.CodeIO)
			if w.Broken() == nil || w.Head().Seq != 20 {
				t.Errorf("broken: %v, head %+v", w.Broken(), w.Head())
			}
			// What is on disk is unknown: nothing more is written.
			audittest.WantCode(t, appendN(w, 1), auditchain.CodeIO)
			_, err = w.RotateKey(nil)
			audittest.WantCode(t, err, auditchain.CodeIO)
			audittest.WantCode(t, w.Sign(), auditchain.CodeIO)
			if err := w.Close(); err != nil {
				t.Error(err)
			}

			w, found := openWriter(t, path, options(), store.SQLite)
			want := int64(20)
			if test.kept {
				want++
			}
			if found.Records != want || found.Unsigned != want-1 {
				t.Errorf("found %+v, want %d records", found, want)
			}
			mustAppend(t, w, 5)
			w.Close()
			audittest.WantIntact(t, audittest.VerifyPath(t, path, auditchain.VerifyOptions{}), want+5)
		})
	}
}

// An error that leaves the database as it was does not break the writer.
func TestRecoverableErrors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w, _ := openWriter(t, path, options(), store.SQLite)
	mustAppend(t, w, 3)
	for _, test := range []struct {
		set, reset string
		code       auditchain.Code
	}{
		{"PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1073741823", auditchain.CodeFull}, // SQLite takes it as the present size
		{"PRAGMA query_only = 1", "PRAGMA query_only = 0", auditchain.CodeReadOnly},
	} {
		if err := w.DB().Exec(test.set); err != nil {
			t.Fatal(err)
		}
		before := *w.Head()
		audittest.WantCode(t, appendN(w, 500), test.code)
		if w.Broken() != nil || w.Head().Seq != before.Seq || w.Head().Hash != before.Hash {
			t.Errorf("%s: broken: %v, head %+v", test.set, w.Broken(), w.Head())
		}
		if err := w.DB().Exec(test.reset); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, w, 3)
	}
	w.Close()
	audittest.WantIntact(t, audittest.VerifyPath(t, path, auditchain.VerifyOptions{}), 9)
}

// A foreign program that keeps the database locked holds the writer up for the
// busy timeout, and does not break it.
func TestBusyDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w, _ := openWriter(t, path, options(), store.SQLite)
	if err := w.DB().Exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	tx, err := audittest.SceneAt(t, path).DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`INSERT INTO meta (name, value) VALUES ('x', 'y')`); err != nil {
		t.Fatal(err)
	}
	audittest.WantCode(t, appendN(w, 1), auditchain.CodeBusy)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, 1)
}

func TestForeignWriterIsNoticed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w, _ := openWriter(t, path, options(), store.SQLite)
	mustAppend(t, w, 3)
	audittest.SceneAt(t, path).SQL(`INSERT INTO records SELECT 4, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 3`)
	audittest.WantCode(t, appendN(w, 1), auditchain.CodeTampered)
	audittest.WantCode(t, appendN(w, 1), auditchain.CodeTampered)
}

func TestDeletedOrReplacedFiles(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"write-ahead log deleted": func(path string) error { return os.Remove(path + "-wal") },
		"write-ahead log replaced": func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.WriteFile(path+"-wal", nil, 0o600))
		},
		"database deleted":  os.Remove,
		"database replaced": func(path string) error { return os.Rename(path+sidecar.PublicSuffix, path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			w, _ := openWriter(t, path, options(), store.SQLite)
			mustAppend(t, w, 3)
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			// SQLite would keep writing into the deleted file.
			err := appendN(w, 1)
			audittest.WantCode(t, err, auditchain.CodeIO)
			if !strings.Contains(err.Error(), "was deleted or replaced") {
				t.Error(err)
			}
			audittest.WantCode(t, appendN(w, 1), auditchain.CodeIO)
		})
	}
}

// Every CheckpointRecords records a commit signs, and Sign signs the rest.
func TestCheckpointsAreSigned(t *testing.T) {
	t.Parallel()
	o := options()
	o.CheckpointRecords = 10
	w, found := openWriter(t, filepath.Join(t.TempDir(), "audit.db"), o, store.SQLite)
	if !found.Created || found.Records != 0 {
		t.Errorf("found %+v", found)
	}
	for _, step := range []struct {
		records int
		signed  int64
	}{{0, 0}, {1, 1}, {9, 1}, {1, 11}, {9, 11}, {12, 32}} { // the first record is signed at once
		mustAppend(t, w, step.records)
		if w.Head().Signed != step.signed || (w.Head().Note == nil) != (step.signed == 0) {
			t.Errorf("after %d more: signed %d, want %d", step.records, w.Head().Signed, step.signed)
		}
	}
	mustAppend(t, w, 1)
	for range 2 { // the second time there is nothing to sign
		if err := w.Sign(); err != nil || w.Head().Signed != 33 {
			t.Errorf("signed %d, %v", w.Head().Signed, err)
		}
	}
	var stored int
	err := w.DB().QueryRowContext(t.Context(), `SELECT count(*) FROM checkpoints`).Scan(&stored)
	if err != nil || stored != 4 {
		t.Errorf("%d checkpoints, %v", stored, err)
	}
}

// The head of a writer that is opened again is the one that was committed.
func TestHeadSurvivesAReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w, _ := openWriter(t, path, options(), store.SQLite)
	mustAppend(t, w, 1)
	mustAppend(t, w, 699) // over two stored nodes
	before, root := *w.Head(), w.Head().Tree.Root()
	w.Close()
	w, found := openWriter(t, path, options(), store.SQLite)
	if found.Created || found.Records != 700 || found.Unsigned != 699 || found.KeyChanged {
		t.Errorf("found %+v", found)
	}
	after := w.Head()
	if after.Seq != before.Seq || after.Time != before.Time || after.Hash != before.Hash || after.Tree.Root() != root || after.Signed != 700 {
		t.Errorf("%+v became %+v", before, after)
	}
}

func TestClockStepIsRecorded(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(audittest.ClockStart)
	o := options()
	o.Now = func() time.Time { return now }
	path := filepath.Join(t.TempDir(), "audit.db")
	w, _ := openWriter(t, path, o, store.SQLite)
	for _, step := range []time.Duration{
		0, -time.Hour, 0, 2 * time.Hour, // set back, and ahead again
		-10 * time.Millisecond, -989 * time.Millisecond, // together one short of a step
		time.Hour, -time.Second, // the smallest step
	} {
		now = now.Add(step)
		mustAppend(t, w, 1)
	}
	w.Close()
	r := audittest.OpenReader(t, path)
	var times []int64
	var steps []string
	for _, e := range audittest.Collect(t, r, auditchain.Filter{}) {
		times = append(times, e.Time.UnixMilli())
		if e.Kind == auditchain.KindLifecycle {
			steps = append(steps, string(e.Body))
		}
	}
	want := []string{
		`{"clock":1789996400000,"event":"clock-stepped-back","newest":1790000000000}`,
		`{"clock":1790007198001,"event":"clock-stepped-back","newest":1790007199001}`,
	}
	if !slices.Equal(steps, want) || !slices.IsSorted(times) || times[len(times)-1] != 1790007199001 {
		t.Errorf("steps %v, times %v", steps, times)
	}
	audittest.WantIntact(t, audittest.Verify(t, r, auditchain.VerifyOptions{}), 10)
}

// A clock that jumps ahead is recorded, and followed only if it stays there: one wrong
// reading does not stop the log's time. Records with another time than the clock's say
// what it was.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	now, passed := time.UnixMilli(audittest.ClockStart), time.Duration(0)
	o := options()
	o.Now, o.Elapsed = func() time.Time { return now }, func() time.Duration { return passed }
	path := filepath.Join(t.TempDir(), "audit.db")
	w, _ := openWriter(t, path, o, store.SQLite)
	century := 876_000 * time.Hour
	for _, step := range []struct{ clock, passed time.Duration }{
		{0, 0},
		{900 * time.Millisecond, 0},            // too small to count
		{century, time.Second},                 // one wrong reading
		{2*time.Second - century, time.Second}, // and right again
		{time.Hour, time.Second},               // set, and it stays so
		{9 * time.Second, 9 * time.Second},
		{time.Second, time.Second},
		{-time.Minute, time.Second},
	} {
		now, passed = now.Add(step.clock), passed+step.passed
		mustAppend(t, w, 1)
	}
	w.Close()
	r := audittest.OpenReader(t, path)
	var got []string
	for _, e := range audittest.Collect(t, r, auditchain.Filter{}) {
		var body struct {
			Event string
			Clock int64
		}
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if body.Clock > 0 {
			body.Clock -= audittest.ClockStart
		}
		got = append(got, strings.TrimSpace(fmt.Sprintln(e.Time.UnixMilli()-audittest.ClockStart, body.Clock, body.Event)))
	}
	const hour, far = 3600_000, 876_000 * 3600_000
	want := []string{
		"0 0",
		"900 0",
		fmt.Sprint(1900, " ", far+900, " clock-stepped-forward"), fmt.Sprint(1900, " ", far+900),
		"2900 0",
		fmt.Sprint(3900, " ", hour+2900, " clock-stepped-forward"), fmt.Sprint(3900, " ", hour+2900),
		fmt.Sprint(12900, " ", hour+11900),
		fmt.Sprint(hour+12900, " 0"),
		fmt.Sprint(hour+12900, " ", hour-47100, " clock-stepped-back"), fmt.Sprint(hour+12900, " ", hour-47100),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	audittest.WantIntact(t, audittest.Verify(t, r, auditchain.VerifyOptions{}), int64(len(want)))
}
