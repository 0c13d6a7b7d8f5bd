package store_test

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(folder, "there.db")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	for name, to := range map[string]string{"file.db": there, "folder": folder} {
		if err := os.Symlink(to, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		there:                                    there,
		filepath.Join(links, "file.db"):          there,
		filepath.Join(links, "folder/there.db"):  there,
		filepath.Join(links, "folder/not.db"):    filepath.Join(folder, "not.db"),
		filepath.Join(folder, "x/../there.db"):   there,
		filepath.Join(folder, "not/there/it.db"): "",
	} {
		got, err := store.Resolve(path)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s became %q, %v; want %q", path, got, err, want)
		}
		if want == "" {
			audittest.WantCode(t, err, auditchain.CodeNotFound)
		}
	}
}

// newWriter returns a writer of an empty log, with an identity.
func newWriter(t *testing.T, path string, connect store.Connect) *store.Writer {
	t.Helper()
	w, err := store.OpenWriter(t.Context(), path, connect)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if err := w.Create(t.Context(), store.Identity{Origin: "log.example/1", FirstKey: "key"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Load(t.Context(), store.SchemaVersion); err != nil {
		t.Fatal(err)
	}
	return w
}

func prepared(t *testing.T, seq int64) *record.Prepared {
	t.Helper()
	r := audittest.Violation(int(seq))
	r.Session, r.Body = "", []byte(`{"a":1}`)
	p := &record.Prepared{}
	if err := p.Prepare(&r); err != nil {
		t.Fatal(err)
	}
	p.Header.Seq, p.Header.Time = seq, audittest.ClockStart+seq
	return p
}

func TestWriterCreatesAPrivateFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := newWriter(t, path, store.SQLite)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if w.Identity != (store.Identity{Origin: "log.example/1", FirstKey: "key"}) || w.Identity.Genesis() == (store.Identity{}).Genesis() {
		t.Errorf("identity %+v", w.Identity)
	}
	if version, err := w.Version(t.Context()); err != nil || version != store.SchemaVersion {
		t.Errorf("version %d, %v", version, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: a statement or connection was not closed", suffix)
		}
	}
}

// How the writer's connection is set decides what a crash or an erasure leaves.
func TestWriterPragmas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := newWriter(t, path, store.SQLite)
	r := openReader(t, path)
	for pragma, want := range map[string][2]string{
		"journal_mode":   {"wal", "wal"},
		"synchronous":    {"2", "2"}, // FULL
		"secure_delete":  {"1", ""},
		"trusted_schema": {"0", "0"},
		"busy_timeout":   {"1000", "5000"},
		"query_only":     {"0", "1"},
	} {
		for i, db := range []store.DB{w.DB, r.DB} {
			var got string
			err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got)
			if err != nil || want[i] != "" && got != want[i] {
				t.Errorf("connection %d: %s is %s, want %s (%v)", i, pragma, got, want[i], err)
			}
		}
	}
	_, err := r.ExecContext(t.Context(), `DELETE FROM meta`)
	audittest.WantCode(t, r.Wrap("writing", err), auditchain.CodeReadOnly)
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := newWriter(t, path, store.SQLite)
	r := openReader(t, path)
	insert := func(seq int64) {
		t.Helper()
		if err := errors.Join(w.Begin(), w.InsertRecords(store.Row{Prepared: prepared(t, seq), Hash: tlog.Hash{byte(seq)}}), w.InsertNode(8, seq, tlog.Hash{9}),
			w.InsertCheckpoint(seq, audittest.ClockStart, []byte("note"))); err != nil {
			t.Fatal(err)
		}
		if last, err := r.LastRecord(t.Context()); err != nil || last != seq-1 {
			t.Errorf("before the commit a reader sees record %d, %v", last, err)
		}
	}
	insert(1)
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	insert(2)
	if err := w.Rollback(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, table := range []string{"records", "tree", "checkpoints"} {
		var n int
		if err := r.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts[table] = n
	}
	if counts["records"] != 1 || counts["tree"] != 1 || counts["checkpoints"] != 1 {
		t.Errorf("the tables have %v rows", counts)
	}
	// A checkpoint of the same size replaces the one before.
	if err := w.InsertCheckpoint(1, audittest.ClockStart, []byte("newer")); err != nil {
		t.Fatal(err)
	}
	if size, note, err := r.NewestCheckpoint(t.Context()); err != nil || size != 1 || string(note) != "newer" {
		t.Errorf("%d, %s, %v", size, note, err)
	}
}

// A row holds what was prepared, and NULL for each absent column.
func TestInsertedRow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := newWriter(t, path, store.SQLite)
	p := prepared(t, 1)
	if err := w.InsertRecords(store.Row{Prepared: p, Hash: tlog.Hash{7}}); err != nil {
		t.Fatal(err)
	}
	var ts int64
	var tenant, kind, body string
	var peer, session, erasedBy any
	var salt, digest, hash []byte
	err := w.QueryRowContext(t.Context(), `SELECT ts, tenant, kind, peer, session, body, salt, digest, hash, erased_by FROM records WHERE seq = 1`).
		Scan(&ts, &tenant, &kind, &peer, &session, &body, &salt, &digest, &hash, &erasedBy)
	if err != nil || ts != audittest.ClockStart+1 || tenant != "acme" || kind != string(record.KindSchemaViolation) || peer != nil || session != nil ||
		body != `{"a":1}` || string(salt) != string(p.Salt[:]) || string(digest) != string(p.Header.Digest[:]) || hash[0] != 7 || erasedBy != nil {
		t.Errorf("%d %s %s %v %v %s %x %x %x %v, %v", ts, tenant, kind, peer, session, body, salt, digest, hash, erasedBy, err)
	}
	if err := w.InsertRecords(store.Row{Prepared: p, Hash: tlog.Hash{7}}); auditchain.CodeOf(w.Wrap("writing", err)) != auditchain.CodeTampered {
		t.Errorf("the same number again: %v", err)
	}
}

func TestEmptyWAL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := newWriter(t, path, store.SQLite)
	if emptied, err := w.EmptyWAL(); err != nil || !emptied {
		t.Errorf("%v, %v", emptied, err)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// A schema that cannot be made leaves an empty database, not half of one.
func TestCreateIsAtomic(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"CREATE TABLE meta", "CREATE VIEW", "PRAGMA application_id", "INSERT INTO meta"} {
		t.Run(statement, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			disk := &audittest.Disk{}
			w, err := store.OpenWriter(t.Context(), path, disk.Connect)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			disk.FailNext(statement, 0, false)
			if err := w.Create(t.Context(), store.Identity{Origin: "o", FirstKey: "k"}); auditchain.CodeOf(err) != auditchain.CodeIO {
				t.Errorf("got %v", err)
			}
			if version, err := w.Version(t.Context()); err != nil || version != 0 {
				t.Errorf("version %d, %v", version, err)
			}
		})
	}
}

func TestConnectFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	connect := func(string) (driver.Connector, error) { return nil, broken }
	path := audittest.CopyLog(t, golden)
	if _, err := store.OpenReader(t.Context(), path, connect); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := store.OpenWriter(t.Context(), path, connect); !errors.Is(err, broken) {
		t.Error(err)
	}
	_, err := store.OpenWriter(t.Context(), filepath.Join(path, "below-a-file.db"), store.SQLite)
	audittest.WantCode(t, err, auditchain.CodeIO)
}

// inReadOnlyFolder marks the process in which TestReaderInAReadOnlyFolder runs
// again, without root's right to write anywhere.
const inReadOnlyFolder = "AGENTD_TEST_READ_ONLY_FOLDER"

// Reading needs no write permission, neither on the file nor on its folder.
func TestReaderInAReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 && os.Getenv(inReadOnlyFolder) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inReadOnlyFolder+"=1")
		out, err := outputWithoutOverride(cmd)
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrPermission) {
			t.Skip("root may write anywhere, and cannot give that up here:", err)
		}
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	path := audittest.CopyLog(t, golden)
	folder := filepath.Dir(path)
	if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(folder, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	if err := os.WriteFile(filepath.Join(folder, "new"), nil, 0o600); !errors.Is(err, os.ErrPermission) {
		t.Fatal("the folder can be written to:", err)
	}
	if last, err := openReader(t, path).LastRecord(t.Context()); err != nil || last != 12 {
		t.Errorf("last record %d, %v", last, err)
	}
}

// A link that leads nowhere creates nothing where it leads.
func TestResolveLinkThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link, target := filepath.Join(folder, "audit.db"), filepath.Join(folder, "elsewhere.db")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if path, err := store.Resolve(link); auditchain.CodeOf(err) != auditchain.CodeNotFound || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("%q, %v", path, err)
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(target)
	if err != nil {
		t.Fatal(err)
	}
	if path, err := store.Resolve(link); err != nil || path != real {
		t.Errorf("%q, %v", path, err)
	}
}
