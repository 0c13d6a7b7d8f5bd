package publish_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/internal/eventually"
)

// always is the key of a witness that never changes it.
func always(key *checkpoint.Key) func() *checkpoint.Key {
	return func() *checkpoint.Key { return key }
}

// outcomes collects the answers of witnesses.
type outcomes struct {
	mu     sync.Mutex
	byName map[string]error // guarded by mu
}

func newOutcomes() *outcomes { return &outcomes{byName: map[string]error{}} }

func (o *outcomes) add(name string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byName[name] = err
}

// of returns the newest answer of a witness that was asked.
func (o *outcomes) of(t *testing.T, name string) error {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	err, asked := o.byName[name]
	if !asked {
		t.Errorf("%s was not asked", name)
	}
	return err
}

func TestUnreachableWitnessDelaysNothing(t *testing.T) {
	t.Parallel()
	key, _ := checkpoint.GenerateKey("witness.example")
	folder, _ := checkpoint.NewFolderStore(t.TempDir())
	refusing := checkpoint.NewKeeper(always(key), folder, func(string) []string { return nil })
	outcomes := newOutcomes()
	l := audittest.Open(t, auditchain.Options{Witnesses: []checkpoint.Witness{refusing}, OnWitness: outcomes.add})
	audittest.Fill(t, l, 10)
	audittest.Close(t, l)
	if err := outcomes.of(t, "witness.example"); !errors.Is(err, checkpoint.ErrUntrusted) {
		t.Errorf("got %v", err)
	}
	audittest.WantIntact(t, audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{}), 10)
}

// A witness that is down when a checkpoint is made is asked again, without a
// new checkpoint, and whoever wants to know hears of each change.
func TestWitnessIsAskedAgain(t *testing.T) {
	t.Parallel()
	key, _ := checkpoint.GenerateKey("witness.example")
	folder, _ := checkpoint.NewFolderStore(t.TempDir())
	var up atomic.Bool
	var logKey atomic.Pointer[string]
	keeper := checkpoint.NewKeeper(always(key), folder, func(string) []string {
		if !up.Load() {
			return nil
		}
		return []string{*logKey.Load()}
	})
	heard := make(chan error, 8)
	l := audittest.Open(t, auditchain.Options{OnWitness: func(_ string, err error) { heard <- err }, CheckpointInterval: time.Hour})
	own := audittest.PublicKeys(t, l.Reader)[0]
	logKey.Store(&own)
	audittest.Fill(t, l, 3)
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
	audittest.Close(t, l)
	if note, err := keeper.Latest(t.Context(), l.Origin()); err != nil || note == nil {
		t.Errorf("the witness keeps %q, %v", note, err)
	}
}

// A checkpoint whose file could not be written is written once it can be, without a
// new checkpoint.
func TestFileIsWrittenAgain(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{CheckpointInterval: time.Hour})
	file := l.Path() + sidecar.CheckpointSuffix
	wait := func(what string, done func(error) bool) {
		t.Helper()
		eventually.Holds(t, what, func() bool {
			s, err := l.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return done(s.CheckpointFile)
		})
	}
	// The first commit of a log signs, too: its file must not come in between.
	audittest.Fill(t, l, 3)
	audittest.Publish(t, l)
	// Nothing can take the place of a folder that is not empty.
	if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	audittest.Fill(t, l, 1)
	note, err := l.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait("the write fails", func(err error) bool { return err != nil })
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	wait("the write is made good", func(err error) bool { return err == nil })
	if got, err := os.ReadFile(file); err != nil || string(got) != string(note) {
		t.Errorf("the file has %q, %v", got, err)
	}
}
