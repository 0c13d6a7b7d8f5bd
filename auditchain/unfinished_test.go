package auditchain_test

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// An erasure that fails half-way is told as long as it is incomplete, and completed without a
// restart and without another erasure.
func TestErasureIsCompletedByItself(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	synctest.Test(t, func(t *testing.T) {
		var disk audittest.Disk
		l, err := auditchain.OpenWith(t.Context(), path, auditchain.Options{CheckpointInterval: time.Hour}, disk.Connect)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		audittest.Fill(t, l, 9)
		disk.FailNext("PRAGMA wal_checkpoint(TRUNCATE)", 0, false)
		done, err := l.Redact(t.Context(), auditchain.Filter{Session: "session-1"}, "r")
		if !errors.Is(err, audittest.ErrDisk) || done.Count != 3 {
			t.Fatalf("%+v, %v", done, err)
		}
		status := func() auditchain.Status {
			s, err := l.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		disk.FailNext("PRAGMA wal_checkpoint(TRUNCATE)", 0, false) // the second time, too
		for range 2 {
			if s := status(); !s.Erasing || !errors.Is(s.Erasure, audittest.ErrDisk) || s.Broken != nil {
				t.Errorf("%+v", s)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := status(); s.Erasing || s.Erasure != nil {
			t.Errorf("%+v", s)
		}
		// Closing does not wait for the next try.
		disk.FailNext("PRAGMA wal_checkpoint(TRUNCATE)", 0, false)
		if _, err := l.Redact(t.Context(), auditchain.Filter{Session: "session-2"}, "r"); err == nil {
			t.Error("no error")
		}
		begun := time.Now()
		audittest.Close(t, l)
		if took := time.Since(begun); took > 0 {
			t.Errorf("closing waited for %v", took)
		}
	})
}
