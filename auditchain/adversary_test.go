package auditchain_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/verify"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"golang.org/x/mod/sumdb/tlog"
)

// An office is a fleet on disk, whose agent desk has its log witnessed by clerk. What an
// auditor has seen of that log is kept apart.
type office struct {
	cfg        daemon.Config
	db         string
	key        string
	checkpoint []byte
	witness    string   // the folder of the witness, as it was then
	witnessKey []string // the witness's keys
	logged     bytes.Buffer
}

var officeFiles = map[string]string{
	"fleet.yaml": "version: 1\nname: office\nagents: [{id: clerk, path: ./clerk}, {id: desk, path: ./desk}]\n" +
		"environments: {default: {peersRef: ./rpc-peers.yaml}}\n",
	"rpc-peers.yaml": "version: 1\npeers:\n  - agent: agent://clerk\n" +
		"    transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]\n",
	"desk/agent.yaml":  "name: desk\naudit: {witnesses: [agent://clerk]}\n",
	"clerk/agent.yaml": "name: clerk\nskills: {cat: {process: {command: [cat]}}}\n",
	"clerk/capabilities.yaml": "version: 1\nagent: agent://clerk\n" +
		"transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]\ncapabilities: [{name: cat}]\n",
}

// newOffice runs the fleet once, over a log with 135 records of its own, a changed key
// and an erasure.
func newOffice(t *testing.T) *office {
	t.Helper()
	dir := shortDir(t)
	for name, text := range officeFiles {
		path := filepath.Join(dir, "fleet", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fleet.Load(filepath.Join(dir, "fleet"), fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{cfg: daemon.Config{
		Fleet: f, Paths: daemon.Paths{State: filepath.Join(dir, "s"), Runtime: filepath.Join(dir, "r")},
		Logger: slog.New(slog.DiscardHandler), Version: "test",
	}}
	o.db = o.cfg.Paths.AuditDB("desk")
	if err := os.MkdirAll(filepath.Dir(o.db), 0o700); err != nil {
		t.Fatal(err)
	}
	l := audittest.OpenAt(t, o.db, auditchain.Options{Name: "desk", Now: audittest.SteppedClock()})
	for i := range 135 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	o.key = audittest.PublicKeys(t, l.Reader)[0]
	if _, err := l.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Redact(t.Context(), auditchain.Filter{Correlation: audittest.Correlation(10)}, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 3).Time, "r"); err != nil {
		t.Fatal(err)
	}
	audittest.Close(t, l)
	o.run(t)
	r := audittest.OpenReader(t, o.db)
	if o.checkpoint, err = r.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	o.witness = o.cfg.Paths.Witness("clerk")
	if o.witnessKey, err = auditchain.PublicKeysOf(o.cfg.Paths.AuditDB("clerk")); err != nil {
		t.Fatal(err)
	}
	return o
}

// shortDir is a folder for a fleet: the path of a socket is short.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// start starts the fleet, lets the witness see a checkpoint and stops it. The error is
// that of the start.
func (o *office) start(t *testing.T) error {
	t.Helper()
	// A log that the witness does not know never gets there by itself.
	return o.startUntil(t, func(_ *daemon.Daemon, note []byte, err error) bool { return err != nil || note != nil })
}

// startUntil starts the fleet and stops it when done, which is given the log's agent and
// what the witness holds of the log.
func (o *office) startUntil(t *testing.T, done func(desk *daemon.Daemon, note []byte, err error) bool) error {
	t.Helper()
	f, err := daemon.StartFleet(t.Context(), o.cfg)
	if err != nil {
		return err
	}
	desk, _ := f.Daemon("desk")
	r := audittest.OpenReader(t, o.db)
	origin := r.Origin()
	if err := r.Close(); err != nil { // the last one to close empties the write-ahead log
		t.Fatal(err)
	}
	eventually.Holds(t, "the witness says what it must say", func() bool {
		note, err := desk.Witnessed(t.Context(), "agent://clerk", origin)
		return done(desk, note, err)
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return f.Stop(ctx)
}

func (o *office) run(t *testing.T) {
	t.Helper()
	if err := o.start(t); err != nil {
		t.Fatal(err)
	}
}

// copy is the office with a state folder of its own, to be damaged.
func (o *office) copy(t *testing.T) (*office, *audittest.Scene) {
	t.Helper()
	dir := shortDir(t)
	c := &office{cfg: o.cfg, key: o.key, checkpoint: o.checkpoint, witness: o.witness, witnessKey: o.witnessKey}
	c.cfg.Paths = daemon.Paths{State: filepath.Join(dir, "s"), Runtime: filepath.Join(dir, "r")}
	c.db = c.cfg.Paths.AuditDB("desk")
	if err := os.CopyFS(c.cfg.Paths.State, os.DirFS(o.cfg.Paths.State)); err != nil {
		t.Fatal(err)
	}
	makePrivate(t, c.cfg.Paths.State)
	return c, audittest.SceneAt(t, c.db)
}

// makePrivate gives files the mode that they had: os.CopyFS adds the rights of others.
func makePrivate(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = os.Chmod(path, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A keptWitness shows what a witness kept.
type keptWitness struct{ *checkpoint.FolderStore }

func (keptWitness) Name() string { return "clerk" }

func (w keptWitness) Latest(ctx context.Context, origin string) ([]byte, error) {
	return w.Load(ctx, origin)
}

func (keptWitness) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return nil, errors.New("it only reads")
}

// audit verifies the log as an auditor does who has kept a key, a checkpoint and the
// witness's folder.
func (o *office) audit(t *testing.T) *auditchain.Report {
	t.Helper()
	store, err := checkpoint.NewFolderStore(o.witness)
	if err != nil {
		t.Fatal(err)
	}
	return audittest.VerifyPath(t, o.db, auditchain.VerifyOptions{
		TrustedKeys: []string{o.key}, Checkpoints: [][]byte{o.checkpoint}, Witnesses: []checkpoint.Witness{keptWitness{store}}, WitnessKeys: o.witnessKey,
	})
}

// rows counts the records of a log in its file.
func rows(t *testing.T, s *audittest.Scene) (count, erased int64) {
	t.Helper()
	_ = s.DB().QueryRowContext(t.Context(), `SELECT count(*), count(*) - count(body) FROM records NOT INDEXED`).Scan(&count, &erased)
	return count, erased
}

// Each way to attack a stopped log that has been tried, on the log of a real agent: it
// is found; the agent that is started on it neither deletes nor erases anything, nor
// makes the fault disappear; and it is found again after that.
func TestAttacksOnTheLog(t *testing.T) {
	t.Parallel()
	original := newOffice(t)
	sound := original.audit(t)
	if !sound.OK() || len(sound.Witnesses) != 1 {
		t.Fatalf("before any attack: %+v", sound)
	}
	last := sound.Last
	run := func(statements string) func(*testing.T, *audittest.Scene) {
		return func(_ *testing.T, s *audittest.Scene) { s.SQL(statements) }
	}
	const hide = `PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'records_kind'; PRAGMA writable_schema = OFF`
	for name, test := range map[string]struct {
		damage func(t *testing.T, s *audittest.Scene)
		class  string
		starts bool // whether the agent starts all the same
	}{
		"a forged pruning of everything": {func(_ *testing.T, s *audittest.Scene) {
			forgeRecord(s, last+1, auditchain.KindPrune, `{"before":1,"count":135,"reason":"x","through":136}`)
		}, "forged-erasure", false},
		"a forged erasure": {func(_ *testing.T, s *audittest.Scene) {
			forgeRecord(s, last+1, auditchain.KindRedaction, `{"count":9,"match":"x","ranges":[[50,59]],"reason":"x"}`)
		}, "unsigned-tail", false},
		"a forged change of keys": {func(_ *testing.T, s *audittest.Scene) {
			forgeRecord(s, last+1, auditchain.KindCheckpoint, `{"event":"key-replaced","key":"x","previous":"y"}`)
		}, "unsigned-tail", false},
		"a record after the clean stop": {func(_ *testing.T, s *audittest.Scene) {
			forgeRecord(s, last+1, auditchain.KindApproval, `{"decision":"approved"}`)
		}, "unsigned-tail", false},
		"the pruning made larger": {run(`UPDATE records SET body = replace(body, '"through":2', '"through":99') WHERE kind = 'prune'`), "content-altered", false},
		"the erasure made larger": {run(`UPDATE records SET body = replace(body, '[[11,11]]', '[[11,99]]') WHERE kind = 'redaction'`), "content-altered", false},
		"a row before the first":  {run(`INSERT INTO records SELECT -1, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 50`), "record-added", false},
		"checkpoints removed from the database": {func(_ *testing.T, s *audittest.Scene) {
			s.Rewrite(100)
			s.Rehash(100, 0)
			s.SQL(`DELETE FROM checkpoints`)
		}, "key-untrusted", false}, // nothing leads from the first key to the second any more
		"every checkpoint removed": {func(t *testing.T, s *audittest.Scene) {
			s.SQL(`DELETE FROM checkpoints; UPDATE records SET ts = ts - 3600000 WHERE seq < 50`)
			if err := os.Remove(s.Path + sidecar.CheckpointSuffix); err != nil {
				t.Fatal(err)
			}
		}, "record-altered", false},
		"records cut off, with every checkpoint over them": {func(t *testing.T, s *audittest.Scene) {
			s.SQL(`DELETE FROM records WHERE seq > 138; DELETE FROM checkpoints WHERE size > 138`)
			if err := os.Remove(s.Path + sidecar.CheckpointSuffix); err != nil {
				t.Fatal(err)
			}
		}, "truncated|witness-conflict", true}, // only what is kept elsewhere tells
		"a record rewritten":          {run(`UPDATE records SET body = '{}' WHERE seq = 50`), "content-altered", true},
		"a record deleted":            {run(`DELETE FROM records WHERE seq = 50`), "record-missing", false},
		"a record erased":             {run(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL WHERE seq = 50`), "forged-erasure", true},
		"a trigger":                   {run(`CREATE TRIGGER quiet BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END`), "schema-altered", false},
		"a table dropped":             {run(`DROP TABLE tree`), "schema-altered", false},
		"the records renamed":         {run(`ALTER TABLE records RENAME TO others`), "schema-altered", false},
		"a column renamed":            {run(`ALTER TABLE records RENAME COLUMN salt TO pepper`), "schema-altered", false},
		"an index dropped":            {run(`DROP INDEX records_kind`), "schema-altered", false},
		"an index taken from listing": {run(hide), "schema-altered", false},
		"an index that hides records": {func(_ *testing.T, s *audittest.Scene) { hideRecords(s) }, "index-altered", true},
		"another key and its signatures": {func(t *testing.T, s *audittest.Scene) {
			resignAll(t, s)
		}, "key-untrusted", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, s := original.copy(t)
			test.damage(t, s)
			found := func(when string) {
				t.Helper()
				report := o.audit(t)
				for _, f := range report.Faults {
					if slices.Contains(strings.Split(test.class, "|"), f.Class.String()) {
						return
					}
				}
				t.Errorf("%s: want %s, got %v", when, test.class, report.Faults)
			}
			found("at rest")
			count, erased := rows(t, s)
			err := o.start(t)
			if (err == nil) != test.starts {
				t.Errorf("the start: %v", err)
			}
			if err != nil && auditchain.CodeOf(err) != auditchain.CodeTampered && auditchain.CodeOf(err) != auditchain.CodeKeyUnsafe {
				t.Errorf("the start fails for another reason: %v", err)
			}
			if after, gone := rows(t, s); after < count || gone != erased || !test.starts && after != count {
				t.Errorf("%d rows, %d of them erased; before the start it were %d and %d", after, gone, count, erased)
			}
			found("after the start")
		})
	}
}

// hideRecords makes the index of kinds one that lacks a record, under its own name and
// text.
func hideRecords(s *audittest.Scene) {
	s.SQL(`DROP INDEX records_kind`)
	s.SQL(`CREATE INDEX records_kind ON records(kind) WHERE seq <> 50`)
	s.SQL(`PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX records_kind ON records(kind)' WHERE name = 'records_kind'; PRAGMA writable_schema = OFF`)
}

// resignAll signs the log anew with a stranger's key, which it adds to the public keys.
func resignAll(t *testing.T, s *audittest.Scene) {
	t.Helper()
	key, err := checkpoint.GenerateKey(audittest.OpenReader(t, s.Path).Origin())
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Parse(string(s.Read(sidecar.CheckpointSuffix)))
	if err != nil {
		t.Fatal(err)
	}
	note, err := checkpoint.Sign(c, key.Signer())
	if err != nil {
		t.Fatal(err)
	}
	s.SQL(`DELETE FROM checkpoints`)
	s.SQL(`INSERT INTO checkpoints VALUES (?, 1, ?)`, c.Size, string(note))
	s.Write(sidecar.CheckpointSuffix, note)
	s.Write(sidecar.PublicSuffix, []byte(key.Verifier()+"\n"))
}

// Somebody who can write to a witness's folder puts an older checkpoint of the log there,
// which the log's key has signed, and cuts the log back to it. The answer lacks the
// witness's signature: it confirms nothing, and the witness itself says so when it runs.
func TestEditedWitness(t *testing.T) {
	t.Parallel()
	o, s := newOffice(t).copy(t)
	o.witness = o.cfg.Paths.Witness("clerk")
	var older []byte
	if err := s.DB().QueryRowContext(t.Context(), `SELECT note FROM checkpoints WHERE size = 138`).Scan(&older); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Parse(string(older))
	if err != nil {
		t.Fatal(err)
	}
	s.SQL(`DELETE FROM records WHERE seq > ?1; DELETE FROM checkpoints WHERE size > ?1`, c.Size)
	s.Write(sidecar.CheckpointSuffix, older)
	store, err := checkpoint.NewFolderStore(o.witness)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Save(t.Context(), c.Origin, older); err != nil {
		t.Fatal(err)
	}
	o.checkpoint = older // the auditor has kept nothing newer
	for _, when := range []string{"at rest", "after a start"} {
		audittest.WantFault(t, o.audit(t), verify.WitnessUnproven, c.Size)
		if when == "at rest" {
			o.cfg.Logger = slog.New(slog.NewTextHandler(&o.logged, nil))
			_ = o.start(t)
		}
	}
	if text := o.logged.String(); !strings.Contains(text, "store was edited") {
		t.Errorf("logged %s", text)
	}
}

// Somebody who can write to the state folders of the log's owner and of its witness puts
// back what both have held before, all of it genuine; or he takes the witness's files
// away, so that it would trust the log anew. The witness's own log says what it had seen.
func TestWitnessSetBack(t *testing.T) {
	t.Parallel()
	first := newOffice(t)
	for name, test := range map[string]func(t *testing.T, kept, folder string){
		"an older state": func(t *testing.T, kept, folder string) { replaceFolder(t, kept, folder) },
		"no state":       func(t *testing.T, _, folder string) { emptyFolder(t, folder) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			older, _ := first.copy(t)
			o, _ := first.copy(t)
			o.witness = o.cfg.Paths.Witness("clerk")
			kept, err := os.ReadFile(older.db + sidecar.CheckpointSuffix)
			if err != nil {
				t.Fatal(err)
			}
			before, err := checkpoint.Parse(string(kept))
			if err != nil {
				t.Fatal(err)
			}
			// The log grows, and the witness sees it.
			if err := o.startUntil(t, func(_ *daemon.Daemon, note []byte, _ error) bool {
				now, err := checkpoint.Parse(string(note))
				return err == nil && now.Size > before.Size
			}); err != nil {
				t.Fatal(err)
			}
			replaceFolder(t, filepath.Dir(older.db), filepath.Dir(o.db))
			test(t, older.cfg.Paths.Witness("clerk"), o.witness)

			o.cfg.Logger = slog.New(slog.NewTextHandler(&o.logged, nil))
			if err := o.startUntil(t, func(desk *daemon.Daemon, _ []byte, _ error) bool { return !desk.Status().Ready }); err != nil {
				t.Fatal(err)
			}
			if text := o.logged.String(); !strings.Contains(text, "this witness's store was edited") {
				t.Errorf("logged %s", text)
			}
			// The auditor has nothing newer than what was put back.
			if report := o.audit(t); report.OK() || !slices.ContainsFunc(report.Faults, func(f auditchain.Fault) bool { return f.Class == verify.WitnessConflict }) {
				t.Errorf("faults %v", report.Faults)
			}
		})
	}
}

// replaceFolder makes a folder hold what another one does.
func replaceFolder(t *testing.T, from, to string) {
	t.Helper()
	emptyFolder(t, to)
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	makePrivate(t, to)
}

func emptyFolder(t *testing.T, folder string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
}
