package chain_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// A new log has a key of its own, under a name that no other log has.
func TestCreate(t *testing.T) {
	t.Parallel()
	origins := map[string]bool{}
	for range 3 {
		path := filepath.Join(t.TempDir(), "audit.db")
		w, found := openWriter(t, path, options(), store.SQLite)
		if found != (chain.Found{Created: true}) {
			t.Errorf("found %+v", found)
		}
		id := w.DB().Identity
		key, err := sidecar.ReadKey(path, sidecar.KeySuffix)
		if err != nil || key.Verifier() != id.FirstKey || key.Name() != id.Origin || w.SigningKey().Verifier() != id.FirstKey {
			t.Errorf("identity %+v, key %v, %v", id, key, err)
		}
		keys, err := sidecar.ReadPublicKeys(path)
		if err != nil || len(keys) != 1 || keys[0] != id.FirstKey {
			t.Errorf("public keys %q, %v", keys, err)
		}
		origins[id.Origin] = true
	}
	if len(origins) != 3 {
		t.Errorf("origins %v", origins)
	}
}

// A crash between the key and the tables of a new log leaves a key, which the next
// start uses.
func TestInterruptedCreation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	key, err := checkpoint.GenerateKey("agentd.audit/test/1")
	if err == nil {
		err = sidecar.WriteKey(path, sidecar.KeySuffix, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	w, found := openWriter(t, path, options(), store.SQLite)
	if !found.Created || w.SigningKey().Verifier() != key.Verifier() || w.DB().Identity.Origin != "agentd.audit/test/1" {
		t.Errorf("found %+v, key %s", found, w.SigningKey())
	}
}

// A log that cannot be opened is left unlocked, for another attempt.
func TestFailedOpenReleasesTheLock(t *testing.T) {
	t.Parallel()
	original := audittest.NewScene(t)
	for name, damage := range map[string]string{
		"another application": `PRAGMA application_id = 7`,
		"another schema":      `DROP INDEX records_kind`,
		"an unsigned forgery": `INSERT INTO records SELECT 601, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 600`,
	} {
		s := original.Copy(t)
		s.SQL(damage)
		if _, _, err := chain.Open(t.Context(), s.Path, options(), store.SQLite); err == nil {
			t.Errorf("%s: opened", name)
		}
		lock, err := sidecar.Lock(s.Path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		lock.Release()
	}
	_, _, err := chain.Open(t.Context(), filepath.Join(t.TempDir(), "no", "audit.db"), options(), store.SQLite)
	audittest.WantCode(t, err, auditchain.CodeNotFound)
	w, _ := openWriter(t, original.Copy(t).Path, options(), store.SQLite)
	_, _, err = chain.Open(t.Context(), w.DB().Path, options(), store.SQLite)
	audittest.WantCode(t, err, auditchain.CodeLocked)
}

// What a killed writer left unsigned is checked, counted and signed.
func TestUnsignedRecordsAreSigned(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w, _ := openWriter(t, path, options(), store.SQLite)
	mustAppend(t, w, 4)
	if err := w.Sign(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, 3)
	w.Close() // without signing, as if it were killed
	w, found := openWriter(t, path, options(), store.SQLite)
	if found != (chain.Found{Records: 7, Unsigned: 3, CheckpointMissing: true}) || w.Head().Signed != 7 {
		t.Errorf("found %+v, signed %d", found, w.Head().Signed)
	}
	w.Close()
	if _, found = openWriter(t, path, options(), store.SQLite); found != (chain.Found{Records: 7, CheckpointMissing: true}) {
		t.Errorf("the next time: %+v", found)
	}
}

// The record that authorises an erasure is signed before anything is erased.
func TestAuthorise(t *testing.T) {
	t.Parallel()
	w, _ := openWriter(t, filepath.Join(t.TempDir(), "audit.db"), options(), store.SQLite)
	mustAppend(t, w, 2)
	seq, err := w.Authorise(record.KindPrune, record.Pruning{Through: 1, Reason: "r"})
	if err != nil || seq != 3 || w.Head().Seq != 3 || w.Head().Signed != 3 {
		t.Errorf("record %d, head %+v, %v", seq, w.Head(), err)
	}
	var body string
	if err := w.DB().QueryRowContext(t.Context(), `SELECT body FROM records WHERE seq = 3 AND kind = 'prune'`).Scan(&body); err != nil ||
		body != `{"before":0,"count":0,"reason":"r","sealed":true,"through":1}` {
		t.Errorf("%s, %v", body, err)
	}
	if _, err := w.Authorise(record.KindPrune, make(chan int)); err == nil || w.Head().Seq != 3 {
		t.Errorf("a body that cannot be marshalled: %v, head %+v", err, w.Head())
	}
}

// Times never decrease, whatever the clock does.
func TestTimesNeverDecrease(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(audittest.ClockStart)
	o := options()
	o.Now = func() time.Time { return now }
	w, _ := openWriter(t, filepath.Join(t.TempDir(), "audit.db"), o, store.SQLite)
	last := int64(0)
	for _, step := range []time.Duration{0, time.Millisecond, -time.Millisecond, -time.Minute, 0, 2 * time.Minute} {
		now = now.Add(step)
		mustAppend(t, w, 1)
		if head := w.Head().Time; head < last || head < now.UnixMilli() {
			t.Errorf("after %s the newest time is %d, before it was %d", step, head, last)
		}
		last = w.Head().Time
	}
}

// A change of keys that fails at any step leaves a log that opens and verifies.
func TestRotationSurvivesDiskErrors(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"BEGIN", "INSERT INTO records", "INSERT OR REPLACE INTO checkpoints", "COMMIT"} {
		for _, after := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "audit.db")
			disk := &audittest.Disk{}
			w, _ := openWriter(t, path, options(), disk.Connect)
			mustAppend(t, w, 3)
			first := w.SigningKey().Verifier()
			disk.FailNext(statement, 0, after)
			if verifier, err := w.RotateKey(nil); !errors.Is(err, audittest.ErrDisk) || verifier != first {
				t.Errorf("%s: %s, %v", statement, verifier, err)
			}
			w.Close()
			w, found := openWriter(t, path, options(), store.SQLite)
			rotated := statement == "COMMIT" && after
			if found.KeyChanged != rotated || (w.SigningKey().Verifier() != first) != rotated {
				t.Errorf("%s, after %t: found %+v", statement, after, found)
			}
			if _, err := os.Stat(path + sidecar.NextKeySuffix); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s, after %t: the file of the next key is still there", statement, after)
			}
			mustAppend(t, w, 1)
			if err := w.Sign(); err != nil {
				t.Error(err)
			}
			w.Close()
			if report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{TrustedKeys: []string{first}}); !report.OK() || report.Unsigned() != 0 {
				t.Errorf("%s, after %t: %+v", statement, after, report)
			}
		}
	}
}

// A cancelled start fails with the context's error and can be repeated.
func TestCancelledOpen(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := chain.Open(ctx, s.Path, options(), store.SQLite); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, found := openWriter(t, s.Path, options(), store.SQLite); found.Records != audittest.SceneRecords {
		t.Errorf("found %+v", found)
	}
}
