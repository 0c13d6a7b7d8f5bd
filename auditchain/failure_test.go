package auditchain

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"modernc.org/sqlite"
)

// A faultyDisk stands between the log and the driver. It fails statements as a
// disk would: before they have any effect, or after.
type faultyDisk struct {
	mu     sync.Mutex
	prefix string // of the statements that fail; guarded by mu
	after  bool   // guarded by mu
	skip   int    // how many to let pass first; guarded by mu
}

var errDisk = errors.New("injected disk error")

func (d *faultyDisk) failNext(prefix string, skip int, after bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prefix, d.skip, d.after = prefix, skip, after
}

// strikes reports whether a statement is to fail, and when.
func (d *faultyDisk) strikes(query string) (fails, after bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.prefix == "" || !strings.HasPrefix(query, d.prefix) {
		return false, false
	}
	if d.skip > 0 {
		d.skip--
		return false, false
	}
	d.prefix = ""
	return true, d.after
}

func (d *faultyDisk) connect(dsn string) (driver.Connector, error) {
	base, err := sqlite.NewConnector(dsn)
	return faultyConnector{base, d}, err
}

type faultyConnector struct {
	driver.Connector
	disk *faultyDisk
}

func (c faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn.(sqliteConn), c.disk}, nil
}

// sqliteConn is what database/sql uses of the driver's connection.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type faultyConn struct {
	sqliteConn
	disk *faultyDisk
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.disk.exec(query, func() (driver.Result, error) { return c.sqliteConn.ExecContext(ctx, query, args) })
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{stmt.(sqliteStmt), query, c.disk}, nil
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type faultyStmt struct {
	sqliteStmt
	query string
	disk  *faultyDisk
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.disk.exec(s.query, func() (driver.Result, error) { return s.sqliteStmt.ExecContext(ctx, args) })
}

func (d *faultyDisk) exec(query string, run func() (driver.Result, error)) (driver.Result, error) {
	fails, after := d.strikes(query)
	if fails && !after {
		return nil, errDisk
	}
	result, err := run()
	if fails && err == nil {
		err = errDisk
	}
	return result, err
}

func openFaulty(t *testing.T, path string) (*Log, *faultyDisk) {
	t.Helper()
	disk := &faultyDisk{}
	l, err := open(context.Background(), path, Options{}, disk.connect)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, disk
}

func TestDiskErrors(t *testing.T) {
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
			l, disk := openFaulty(t, path)
			fill(t, l, 20)
			disk.failNext(test.statement, 0, test.after)
			_, err := l.Append(context.Background(), violation(1))
			if !errors.Is(err, errDisk) || CodeOf(err) != CodeIO {
				t.Fatalf("got %v", err)
			}
			// What is on disk is not known: nothing more is written.
			_, err = l.Append(context.Background(), violation(2))
			wantCode(t, err, CodeIO)
			_, err = l.RotateKey(context.Background())
			wantCode(t, err, CodeIO)
			status, err := l.Status(context.Background())
			if err != nil || status.Broken == nil {
				t.Errorf("%+v, %v", status, err)
			}
			if err := l.Close(); CodeOf(err) != CodeIO {
				t.Errorf("close: %v", err)
			}

			l = openAt(t, path, Options{})
			want := int64(20)
			if test.kept {
				want++
			}
			if r := l.Recovery(); r.Records != want || r.Unsigned != want {
				t.Errorf("recovery %+v, want %d records", r, want)
			}
			fill(t, l, 5)
			closeLog(t, l)
			wantIntact(t, verifyPath(t, path, VerifyOptions{}), want+5)
		})
	}
}

func TestErasuresSurviveDiskErrors(t *testing.T) {
	for skip := range 3 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d, after %v", skip, after), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "audit.db")
				l, disk := openFaulty(t, path)
				fill(t, l, 9)
				disk.failNext("COMMIT", skip, after)
				_, redactErr := l.Redact(context.Background(), Filter{Session: "session-1"}, "r")
				_, rotateErr := l.RotateKey(context.Background())
				if redactErr == nil && rotateErr == nil {
					t.Fatal("nothing failed")
				}
				l.Close()
				l = openAt(t, path, Options{})
				fill(t, l, 3)
				closeLog(t, l)
				report := verifyPath(t, path, VerifyOptions{})
				if !report.OK() || report.Unsigned() != 0 {
					t.Errorf("%+v", report)
				}
				if redactErr == nil && report.Erased != 3 {
					t.Errorf("%d records are erased", report.Erased)
				}
			})
		}
	}
}

func TestFullDisk(t *testing.T) {
	l := openLog(t, Options{})
	limit := func(pages int) {
		err := l.do(context.Background(), func(w *writer) error {
			return w.exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // SQLite takes it as the present size
	var acknowledged, refused atomic.Int64
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 50 {
				_, err := l.Append(context.Background(), violation(c*50+i))
				switch CodeOf(err) {
				case 0:
					acknowledged.Add(1)
				case CodeFull:
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if refused.Load() == 0 {
		t.Fatal("the disk never got full")
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), acknowledged.Load())
	limit(1 << 30)
	fill(t, l, 10) // there is room again
	closeLog(t, l)
	wantIntact(t, verifyPath(t, l.Path(), VerifyOptions{}), acknowledged.Load()+10)
}

func TestReadOnlyDatabase(t *testing.T) {
	l := openLog(t, Options{})
	fill(t, l, 3)
	set := func(on int) {
		if err := l.do(context.Background(), func(w *writer) error { return w.exec(fmt.Sprintf("PRAGMA query_only = %d", on)) }); err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	_, err := l.Append(context.Background(), violation(1))
	wantCode(t, err, CodeReadOnly)
	set(0)
	fill(t, l, 3)
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 6)
}

func TestForeignWriterIsNoticed(t *testing.T) {
	l := openLog(t, Options{})
	fill(t, l, 3)
	s := &scene{t: t, path: l.Path()}
	s.sql(`INSERT INTO records SELECT 4, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 3`)
	_, err := l.Append(context.Background(), violation(1))
	wantCode(t, err, CodeTampered)
	_, err = l.Append(context.Background(), violation(2))
	wantCode(t, err, CodeTampered)
}

func TestDeletedOrReplacedFiles(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"write-ahead log deleted": func(path string) error { return os.Remove(path + "-wal") },
		"write-ahead log replaced": func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.WriteFile(path+"-wal", nil, 0o600))
		},
		"database deleted":  os.Remove,
		"database replaced": func(path string) error { return os.Rename(path+publicSuffix, path) },
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, Options{})
			fill(t, l, 3)
			if err := damage(l.Path()); err != nil {
				t.Fatal(err)
			}
			// SQLite would go on writing into the deleted file.
			_, err := l.Append(context.Background(), violation(1))
			wantCode(t, err, CodeIO)
			if !strings.Contains(err.Error(), "was deleted or replaced") {
				t.Error(err)
			}
			_, err = l.Append(context.Background(), violation(2))
			wantCode(t, err, CodeIO)
		})
	}
}

func TestWriteAheadLogLostAfterACrash(t *testing.T) {
	l := openLog(t, Options{})
	fill(t, l, 3)
	note, err := l.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	crashed := copyFolder(t, l.Path()) // as the files are after kill -9
	if err := os.WriteFile(crashed+checkpointSuffix, note, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(crashed + "-wal"); err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), crashed, Options{})
	if CodeOf(err) != CodeRollback {
		t.Fatalf("got %v", err)
	}
}

func TestCorruptPage(t *testing.T) {
	original := newScene(t, t.TempDir())
	s := &scene{t: t, path: copyFolder(t, original.path)}
	s.sql(`PRAGMA wal_checkpoint(TRUNCATE)`)
	raw := s.read("")
	const page = 4096
	damaged := 0
	for at := page; at < len(raw); at += 3 * page {
		s := &scene{t: t, path: copyFolder(t, s.path)}
		broken := append([]byte(nil), raw...)
		for i := range page {
			broken[at+i] = 0xA5
		}
		s.write("", broken)
		r, err := OpenReader(context.Background(), s.path)
		if err != nil {
			if code := CodeOf(err); code != CodeCorrupt && code != CodeTampered {
				t.Fatalf("page %d: %v", at/page, err)
			}
			damaged++
			continue
		}
		report, err := r.Verify(context.Background(), VerifyOptions{})
		if err != nil && CodeOf(err) != CodeCorrupt {
			t.Errorf("page %d: %v", at/page, err)
		}
		if err != nil || !report.OK() {
			damaged++ // the rest are pages of indexes and free ones
		}
		r.Close()
	}
	if damaged < 10 {
		t.Errorf("%d damaged pages were noticed, of %d", damaged, len(raw)/page)
	}
	for i := range 200 {
		raw[i] = 0xA5
	}
	s.write("", raw)
	_, err := OpenReader(context.Background(), s.path)
	wantCode(t, err, CodeNotAuditLog)
}

func TestUnreachableWitnessDelaysNothing(t *testing.T) {
	key, _ := checkpoint.GenerateKey("witness.example")
	folder, _ := checkpoint.NewFolderStore(t.TempDir())
	refusing := checkpoint.NewKeeper(key, folder, func(string) []string { return nil })
	l := openLog(t, Options{Witnesses: []checkpoint.Witness{refusing}})
	fill(t, l, 10)
	closeLog(t, l)
	witnesses, _ := l.publisher.status()
	if err := witnesses["witness.example"]; !errors.Is(err, checkpoint.ErrUntrusted) {
		t.Errorf("got %v", err)
	}
	wantIntact(t, verifyPath(t, l.Path(), VerifyOptions{}), 10)
}

// A witness that is down when a checkpoint is made is asked again, without a
// new checkpoint, and whoever wants to know hears of each change.
func TestWitnessIsAskedAgain(t *testing.T) {
	key, _ := checkpoint.GenerateKey("witness.example")
	folder, _ := checkpoint.NewFolderStore(t.TempDir())
	var up atomic.Bool
	var logKey atomic.Pointer[string]
	keeper := checkpoint.NewKeeper(key, folder, func(string) []string {
		if !up.Load() {
			return nil
		}
		return []string{*logKey.Load()}
	})
	heard := make(chan error, 8)
	l := openLog(t, Options{OnWitness: func(_ string, err error) { heard <- err }, CheckpointInterval: time.Hour})
	own := l.writer.signingKey.Load().Verifier()
	logKey.Store(&own)
	fill(t, l, 3)
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.AddWitness(keeper)
	if err := <-heard; !errors.Is(err, checkpoint.ErrUntrusted) {
		t.Errorf("a witness that does not know the log: %v", err)
	}
	up.Store(true)
	if err := <-heard; err != nil {
		t.Errorf("the same witness, later: %v", err)
	}
	closeLog(t, l)
	if note, err := keeper.Latest(t.Context(), l.Origin()); err != nil || note == nil {
		t.Errorf("the witness keeps %q, %v", note, err)
	}
}
