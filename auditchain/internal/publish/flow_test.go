package publish_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/publish"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

// signedLog is a closed log of n records, and its checkpoints of each size.
func signedLog(t *testing.T, n int) (*store.Reader, [][]byte) {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{CheckpointInterval: time.Hour})
	notes := make([][]byte, n+1)
	for i := 1; i <= n; i++ {
		audittest.Append(t, l, audittest.Violation(i))
		note, err := l.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		notes[i] = note
	}
	audittest.Close(t, l)
	db, err := store.OpenReader(context.Background(), l.Path(), store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, notes
}

// newKeeper returns a witness with a name that trusts the log.
func newKeeper(t *testing.T, name string, db *store.Reader) *checkpoint.Keeper {
	t.Helper()
	key, err := checkpoint.GenerateKey(name)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := checkpoint.NewFolderStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.NewKeeper(always(key), folder, func(string) []string { return []string{db.Identity.FirstKey} })
}

// A gate is a witness that waits to be let through.
type gate struct {
	checkpoint.Witness
	asked chan int64 // the size of each checkpoint shown
	open  chan struct{}
}

func (g gate) Cosign(ctx context.Context, note []byte, old int64, growth tlog.TreeProof) ([]byte, error) {
	c, err := checkpoint.Parse(string(note))
	if err != nil {
		return nil, err
	}
	g.asked <- c.Size
	<-g.open
	return g.Witness.Cosign(ctx, note, old, growth)
}

// Checkpoints that arrive while a witness is asked are published as one: the
// newest. Neither the same one again nor nil is published.
func TestOnlyTheNewestIsPublished(t *testing.T) {
	t.Parallel()
	db, notes := signedLog(t, 5)
	g := gate{newKeeper(t, "w", db), make(chan int64, 9), make(chan struct{}, 9)}
	p := publish.New(&db.DB, []checkpoint.Witness{g}, nil)
	p.Start()
	p.Publish(nil)
	p.Publish(notes[1])
	if size := <-g.asked; size != 1 {
		t.Fatalf("shown %d first", size)
	}
	for _, note := range notes[2:] {
		p.Publish(note)
		p.Publish(note)
	}
	close(g.open)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	close(g.asked)
	var sizes []int64
	for size := range g.asked {
		sizes = append(sizes, size)
	}
	if len(sizes) != 1 || sizes[0] != 5 {
		t.Errorf("shown %v after the first", sizes)
	}
	witnesses, file := p.Status()
	if err, asked := witnesses["w"]; !asked || err != nil || file != nil {
		t.Errorf("status %v, %v", witnesses, file)
	}
}

// The file carries the log's signature and that of every witness.
func TestFileIsCosigned(t *testing.T) {
	t.Parallel()
	db, notes := signedLog(t, 3)
	all := []checkpoint.Witness{newKeeper(t, "one", db), newKeeper(t, "two", db)}
	p := publish.New(&db.DB, all[:1], nil)
	p.Start()
	p.Publish(notes[2])
	p.AddWitness(all[1])
	p.Publish(notes[3])
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	note, err := sidecar.ReadCheckpoint(db.Path)
	if err != nil {
		t.Fatal(err)
	}
	signers := strings.Join(checkpoint.Signers(note), " ")
	c, err := checkpoint.Parse(string(note))
	if err != nil || c.Size != 3 || !strings.HasPrefix(signers, db.Identity.Origin+" ") || !strings.Contains(signers, "one") || !strings.Contains(signers, "two") {
		t.Errorf("size %d, signed by %s, %v", c.Size, signers, err)
	}
}

// A witness that is added after the newest checkpoint is shown that one.
func TestLateWitness(t *testing.T) {
	t.Parallel()
	db, notes := signedLog(t, 2)
	answered := make(chan error, 4)
	p := publish.New(&db.DB, nil, func(_ string, err error) { answered <- err })
	p.Start()
	defer p.Stop()
	p.Publish(notes[2])
	for published := false; !published; { // the file is written before a witness is asked
		note, err := sidecar.ReadCheckpoint(db.Path)
		if err != nil {
			t.Fatal(err)
		}
		published = string(note) == string(notes[2])
	}
	w := newKeeper(t, "late", db)
	p.AddWitness(w)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if note, err := w.Latest(t.Context(), db.Identity.Origin); err != nil || !strings.HasPrefix(string(note), strings.TrimSpace(string(notes[2]))) {
		t.Errorf("the witness holds %q, %v", note, err)
	}
}

// A scripted witness has an error for each size of checkpoint.
type scripted struct {
	errs  []error // by size
	asked chan int64
}

func (s scripted) Name() string                                   { return "scripted" }
func (s scripted) Latest(context.Context, string) ([]byte, error) { return nil, nil }
func (s scripted) Cosign(_ context.Context, note []byte, _ int64, _ tlog.TreeProof) ([]byte, error) {
	c, err := checkpoint.Parse(string(note))
	if err != nil {
		return nil, err
	}
	s.asked <- c.Size
	return nil, s.errs[c.Size]
}

// The callback hears of a witness once for each change of its answer's kind.
func TestOnWitnessHearsOfChanges(t *testing.T) {
	t.Parallel()
	db, notes := signedLog(t, 5)
	down, timeout := errors.New("down"), errors.New("timeout")
	w := scripted{errs: []error{nil, down, timeout, checkpoint.ErrInconsistent, checkpoint.ErrInconsistent, down}, asked: make(chan int64, 100)}
	var heard []error
	p := publish.New(&db.DB, []checkpoint.Witness{w}, func(name string, err error) {
		if name != "scripted" || !strings.Contains(err.Error(), "witness scripted: ") {
			t.Errorf("%s: %v", name, err)
		}
		heard = append(heard, err)
	})
	p.Start()
	for size := int64(1); size <= 5; size++ {
		p.Publish(notes[size])
		for <-w.asked != size { // it may have been asked about the last one again
		}
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if len(heard) != 3 || !errors.Is(heard[0], down) || !errors.Is(heard[1], checkpoint.ErrInconsistent) || !errors.Is(heard[2], down) {
		t.Errorf("heard %v", heard)
	}
}

// If the file cannot be written, Stop and Status return why.
func TestUnwritableFile(t *testing.T) {
	t.Parallel()
	db, notes := signedLog(t, 1)
	db.Path = filepath.Join(db.Path, "below", "a-file")
	p := publish.New(&db.DB, nil, nil)
	p.Start()
	p.Publish(notes[1])
	audittest.WantCode(t, p.Stop(), auditchain.CodeIO)
	_, err := p.Status()
	audittest.WantCode(t, err, auditchain.CodeIO)
}

func TestCosignNewest(t *testing.T) {
	t.Parallel()
	db, notes := signedLog(t, 3)
	w := newKeeper(t, "w", db)
	if _, err := w.Cosign(t.Context(), notes[1], 0, nil); err != nil {
		t.Fatal(err)
	}
	note, err := publish.CosignNewest(t.Context(), &db.DB, w) // from 1 to 3, with a proof
	if err != nil || strings.Join(checkpoint.Signers(note), " ") != db.Identity.Origin+" w" {
		t.Errorf("%s, %v", note, err)
	}
	if _, err := publish.CosignNewest(t.Context(), &db.DB, w); err != nil {
		t.Errorf("the same state again: %v", err)
	}
	empty := audittest.Open(t, auditchain.Options{})
	_, err = empty.ShowTo(t.Context(), w)
	audittest.WantCode(t, err, auditchain.CodeNotFound)
}
