package chain_test

import (
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// A record that somebody else has written, and chained as the log would have, is not
// signed: the writer knows what it has written itself.
func TestReopenSignsNothingForeign(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	w, found := openWriter(t, s.Path, options(), store.SQLite)
	mustAppend(t, w, 1)
	forged := found.Records + 2
	s.Insert(forged, auditchain.KindLifecycle, []byte(`{"event":"started"}`))
	s.Rehash(forged, 0)
	audittest.WantCode(t, appendN(w, 1), auditchain.CodeTampered)
	for range 2 {
		audittest.WantCode(t, w.Reopen(t.Context()), auditchain.CodeTampered)
	}
	s.SQL(`DELETE FROM records WHERE seq >= ?`, forged)
	if err := w.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, 1)
	if w.Head().Seq != forged {
		t.Errorf("the log goes on with record %d", w.Head().Seq)
	}
}

// A transaction that was reported as failed may be on disk all the same. It is the
// writer's own, and stays.
func TestReopenKeepsWhatWasInDoubt(t *testing.T) {
	t.Parallel()
	disk := &audittest.Disk{}
	w, _ := openWriter(t, filepath.Join(t.TempDir(), "audit.db"), options(), disk.Connect)
	mustAppend(t, w, 2)
	disk.FailNext("COMMIT", 0, true)
	audittest.WantCode(t, appendN(w, 3), auditchain.CodeIO)
	if err := w.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, 1)
	if w.Head().Seq != 6 {
		t.Errorf("the log goes on with record %d", w.Head().Seq)
	}
}
