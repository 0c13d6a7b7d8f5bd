package auditchain_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/store"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]auditchain.Options{
		"a name with a slash":   {Name: "a/b"},
		"a name with a space":   {Name: "a b"},
		"a name that is hidden": {Name: "é"},
		"negative records":      {CheckpointRecords: -1},
		"negative interval":     {CheckpointInterval: -1},
		"negative queue":        {MaxPending: -1},
	} {
		_, err := auditchain.Open(t.Context(), filepath.Join(t.TempDir(), "audit.db"), o)
		if auditchain.CodeOf(err) != auditchain.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, prefix := range map[string]string{"": "agentd.audit/log/", "Aa-9_.z": "agentd.audit/Aa-9_.z/"} {
		l := audittest.Open(t, auditchain.Options{Name: name})
		if origin := l.Origin(); len(origin) != len(prefix)+16 || origin[:len(prefix)] != prefix {
			t.Errorf("%q: origin %s", name, origin)
		}
	}
}

// Only callers' kinds can be appended.
func TestRejectedKinds(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	var taken int64
	for _, kind := range append(auditchain.Kinds(), "", "no_such_kind") {
		_, err := l.Append(t.Context(), auditchain.Record{Kind: kind})
		if rejected := !kind.Valid() || kind.Reserved(); rejected != (auditchain.CodeOf(err) == auditchain.CodeInvalid) || !rejected && err != nil {
			t.Errorf("%q: %v", kind, err)
		}
		if err == nil {
			taken++
		}
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), taken)
}

func TestStatus(t *testing.T) {
	t.Parallel()
	key, err := checkpoint.GenerateKey("witness.example")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := checkpoint.NewFolderStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stranger := checkpoint.NewKeeper(func() *checkpoint.Key { return key }, folder, func(string) []string { return nil })
	heard := make(chan error, 9)
	l := audittest.Open(t, auditchain.Options{
		CheckpointInterval: time.Hour, Witnesses: []checkpoint.Witness{stranger}, OnWitness: func(_ string, err error) { heard <- err },
	})
	if note, err := l.Checkpoint(t.Context()); note != nil || err != nil {
		t.Errorf("an empty log is signed: %q, %v", note, err)
	}
	for i := range 3 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	status := func() auditchain.Status {
		t.Helper()
		s, err := l.Status(t.Context())
		if err != nil || s.Broken != nil || s.CheckpointFile != nil {
			t.Errorf("%+v, %v", s, err)
		}
		return s
	}
	if s := status(); s.Records != 3 || s.Signed != 1 { // the first at once
		t.Errorf("%+v", s)
	}
	note, err := l.Checkpoint(t.Context())
	if c, perr := checkpoint.Parse(string(note)); err != nil || perr != nil || c.Size != 3 || c.Origin != l.Origin() {
		t.Errorf("%+v, %v, %v", c, err, perr)
	}
	<-heard
	if s := status(); s.Records != 3 || s.Signed != 3 || !errors.Is(s.Witnesses["witness.example"], checkpoint.ErrUntrusted) {
		t.Errorf("%+v", s)
	}
}

// Records are signed after a while without anyone asking for it.
func TestCheckpointInterval(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{CheckpointInterval: time.Millisecond})
	audittest.Append(t, l, audittest.Violation(1)) // signed at once
	audittest.Append(t, l, audittest.Violation(2))
	for {
		s, err := l.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Signed == 2 {
			return
		}
	}
}

// After a failed write whose effect is unknown, the log refuses everything but
// Status and reading, until it is opened again.
func TestBrokenLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	disk := &audittest.Disk{}
	l, err := auditchain.OpenWith(t.Context(), path, auditchain.Options{CheckpointInterval: time.Hour}, disk.Connect)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	disk.FailNext("COMMIT", 0, false)
	_, err = l.Append(t.Context(), audittest.Violation(1))
	audittest.WantCode(t, err, auditchain.CodeIO)
	if !errors.Is(err, audittest.ErrDisk) {
		t.Errorf("the cause is lost: %v", err)
	}
	written, err := l.AppendAll(t.Context(), []auditchain.Record{audittest.Violation(1), audittest.Violation(2)})
	if written != 0 || auditchain.CodeOf(err) != auditchain.CodeIO {
		t.Errorf("%d written, %v", written, err)
	}
	// A record that is none does not hide that.
	written, err = l.AppendAll(t.Context(), []auditchain.Record{{Kind: "unknown"}, audittest.Violation(2), {Kind: "unknown"}})
	if written != 0 || auditchain.CodeOf(err) != auditchain.CodeIO {
		t.Errorf("%d written, %v", written, err)
	}
	_, err = l.Checkpoint(t.Context())
	audittest.WantCode(t, err, auditchain.CodeIO)
	_, err = l.RotateKey(t.Context())
	audittest.WantCode(t, err, auditchain.CodeIO)
	_, err = l.Prune(t.Context(), time.Now().Add(time.Hour), "r")
	audittest.WantCode(t, err, auditchain.CodeIO)
	if s, err := l.Status(t.Context()); err != nil || !errors.Is(s.Broken, audittest.ErrDisk) || s.Records != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if n := len(audittest.Collect(t, l.Reader, auditchain.Filter{})); n != 3 {
		t.Errorf("%d records can be read", n)
	}
	audittest.WantCode(t, l.Close(), auditchain.CodeIO)
	audittest.WantCode(t, l.Close(), auditchain.CodeIO) // as before
	l = audittest.OpenAt(t, path, auditchain.Options{})
	if r := l.Recovery(); r != (auditchain.Recovery{Records: 3, Unsigned: 2}) {
		t.Errorf("recovery %+v", r)
	}
}

func TestClosedLog(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Close(t, l)
	for name, call := range map[string]func() error{
		"append":     func() error { _, err := l.Append(t.Context(), audittest.Violation(1)); return err },
		"checkpoint": func() error { _, err := l.Checkpoint(t.Context()); return err },
		"rotate":     func() error { _, err := l.RotateKey(t.Context()); return err },
		"status":     func() error { _, err := l.Status(t.Context()); return err },
	} {
		if err := call(); auditchain.CodeOf(err) != auditchain.CodeClosed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record whose caller gives up while it waits its turn is not written, and
// those after it are.
func TestAbandonedAppend(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	release := l.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := l.Append(ctx, audittest.Violation(1))
		first <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the abandoned one: %v", err)
	}
	// A command that waits its turn gives up as well.
	if _, err := l.Checkpoint(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a checkpoint: %v", err)
	}
	release()
	if seq := audittest.Append(t, l, audittest.Violation(2)); seq != 1 {
		t.Errorf("the next record has number %d", seq)
	}
	entries := audittest.Collect(t, l.Reader, auditchain.Filter{})
	if len(entries) != 1 || entries[0].Correlation != audittest.Correlation(2) {
		t.Errorf("the log holds %+v", entries)
	}
}

// A full queue blocks further appends until there is room, or their context ends.
func TestFullQueueBlocks(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{MaxPending: 1})
	release := l.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan error)
	for i := range 3 {
		go func() {
			_, err := l.Append(ctx, audittest.Violation(i))
			answers <- err
		}()
	}
	cancel()
	for range 3 {
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	release()
	audittest.Append(t, l, audittest.Violation(9))
	if n := len(audittest.Collect(t, l.Reader, auditchain.Filter{})); n != 1 {
		t.Errorf("%d records", n)
	}
}

// A record's hash stays when the record is pruned.
func TestHashesStay(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 5)
	second := audittest.Get(t, l.Reader, 2)
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 4).Time, "r"); err != nil {
		t.Fatal(err)
	}
	if hash, err := l.Hash(t.Context(), 2); err != nil || hash != second.Hash {
		t.Errorf("%s, %v", hash, err)
	}
	if n, err := l.CountPruned(t.Context(), 1); err != nil || n != 2 {
		t.Errorf("%d pruned, %v", n, err)
	}
	if hash, err := l.Hash(t.Context(), 6); err != nil || hash != audittest.Get(t, l.Reader, 6).Hash {
		t.Errorf("%s, %v", hash, err)
	}
	for _, seq := range []int64{-1, 0, 7} {
		_, err := l.Hash(t.Context(), seq)
		audittest.WantCode(t, err, auditchain.CodeNotFound)
	}
}

// A log that fails to open can be tried again.
func TestFailedOpenReleasesTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	audittest.Close(t, audittest.OpenAt(t, path, auditchain.Options{}))
	audittest.SceneAt(t, path).SQL(`DELETE FROM meta WHERE name = 'origin'`)
	for range 2 { // the second time it is not locked by the first
		_, err := auditchain.OpenWith(t.Context(), path, auditchain.Options{}, store.SQLite)
		audittest.WantCode(t, err, auditchain.CodeTampered)
	}
}
