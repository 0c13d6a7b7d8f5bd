package auditchain_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/daemon"
)

// Nothing that an operator may do to a log raises an alarm: not with the log's agent, not
// with its witness, and not with an auditor who has kept the first key, a checkpoint and
// the witness's folder.
func TestLawfulOperations(t *testing.T) {
	t.Parallel()
	o, s := newOffice(t).copy(t)
	o.witness = o.cfg.Paths.Witness("clerk") // it goes on, and the auditor sees it
	write := func(change func(*auditchain.Log) error) func(*testing.T) {
		return func(t *testing.T) {
			l := audittest.OpenAt(t, o.db, auditchain.Options{Name: "desk"})
			audittest.Append(t, l, audittest.Violation(1))
			if err := change(l); err != nil {
				t.Fatal(err)
			}
			audittest.Append(t, l, audittest.Violation(2))
			audittest.Close(t, l)
		}
	}
	backup := filepath.Join(t.TempDir(), "audit.db")
	for _, step := range []struct {
		name string
		do   func(*testing.T)
		says string // what the agent logs of it, in order
	}{
		{"redact", write(func(l *auditchain.Log) error {
			_, err := l.Redact(t.Context(), auditchain.Filter{Correlation: audittest.Correlation(20)}, "a request")
			return err
		}), ""},
		{"prune", write(func(l *auditchain.Log) error {
			_, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 30).Time, "retention")
			return err
		}), ""},
		{"rotate the key", write(func(l *auditchain.Log) error {
			_, err := l.RotateKey(t.Context())
			return err
		}), ""},
		{"vacuum", func(*testing.T) { s.SQL(`VACUUM`) }, ""},
		{"analyze and reindex", func(*testing.T) { s.SQL(`REINDEX; PRAGMA wal_checkpoint(TRUNCATE)`) }, ""},
		{"copy to another place", func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "desk")
			replaceFolder(t, filepath.Dir(o.db), to)
			if err := errors.Join(os.RemoveAll(filepath.Dir(o.db)), os.Rename(to, filepath.Dir(o.db))); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"back up, and restore that with all of its files", func(t *testing.T) {
			for _, suffix := range []string{"", sidecar.KeySuffix, sidecar.PublicSuffix, sidecar.CheckpointSuffix} {
				copyFile(t, o.db+suffix, backup+suffix)
			}
			emptyFolder(t, filepath.Dir(o.db))
			for _, suffix := range []string{"", sidecar.KeySuffix, sidecar.PublicSuffix, sidecar.CheckpointSuffix} {
				copyFile(t, backup+suffix, o.db+suffix)
			}
		}, ""},
		{"restore a backup of the database and the key alone", func(t *testing.T) {
			for _, suffix := range []string{"", sidecar.KeySuffix} {
				copyFile(t, o.db+suffix, backup+suffix)
			}
			emptyFolder(t, filepath.Dir(o.db))
			for _, suffix := range []string{"", sidecar.KeySuffix} {
				copyFile(t, backup+suffix, o.db+suffix)
			}
		}, "audit.db.pub\naudit.db.checkpoint"},
	} {
		step.do(t)
		// At rest, the auditor still compares with the witness's state from before.
		if report := o.audit(t); !report.OK() {
			t.Fatalf("%s, at rest: %v", step.name, report.Faults)
		}
		o.logged.Reset()
		o.cfg.Logger = slog.New(slog.NewTextHandler(&o.logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
		size := audittest.VerifyPath(t, o.db, auditchain.VerifyOptions{}).Last
		if err := o.startUntil(t, func(_ *daemon.Daemon, note []byte, _ error) bool {
			c, err := checkpoint.Parse(string(note))
			return err == nil && c.Size > size
		}); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if report := o.audit(t); !report.OK() || len(report.Witnesses) != 1 {
			t.Fatalf("%s, after the start: %v", step.name, report.Faults)
		}
		var said []string
		for line := range strings.Lines(o.logged.String()) {
			// The stop may come first; and this program is no agentd that confines skills.
			if !strings.Contains(line, "EAGENTRPC_ABANDONED") && !strings.Contains(line, "condition=sandbox") {
				said = append(said, line)
			}
		}
		wants := strings.Fields(step.says)
		if len(said) != len(wants) {
			t.Errorf("%s: logged %q", step.name, said)
			continue
		}
		for i, want := range wants {
			if !strings.Contains(said[i], want) {
				t.Errorf("%s: logged %q, without %s", step.name, said[i], want)
			}
		}
	}
}

// An agent that has lost its log for good gets another one witnessed once an operator of
// the witness has taken the memory of the first away. That stays on record.
func TestForgetLostLog(t *testing.T) {
	t.Parallel()
	o, _ := newOffice(t).copy(t)
	emptyFolder(t, filepath.Dir(o.db))
	refused := func(desk *daemon.Daemon, _ []byte, _ error) bool { return !desk.Status().Ready }
	if err := o.startUntil(t, refused); err != nil {
		t.Fatal(err)
	}
	emptyFolder(t, o.cfg.Paths.Witness("clerk"))
	if err := o.startUntil(t, refused); err != nil { // the files alone do not decide it
		t.Fatal(err)
	}
	clerk := audittest.OpenAt(t, o.cfg.Paths.AuditDB("clerk"), auditchain.Options{Name: "clerk"})
	if _, err := clerk.Redact(t.Context(), auditchain.Filter{Kinds: []auditchain.Kind{auditchain.KindLifecycle}, Peer: "agent://desk"}, "the disk of desk is lost"); err != nil {
		t.Fatal(err)
	}
	audittest.Close(t, clerk)
	emptyFolder(t, o.cfg.Paths.Witness("clerk"))
	if err := o.startUntil(t, func(_ *daemon.Daemon, note []byte, _ error) bool { return note != nil }); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A copy has its own time.
	if err := os.Chtimes(to, time.Time{}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
}
