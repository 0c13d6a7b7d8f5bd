package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"golang.org/x/mod/sumdb/tlog"
)

func newKey(t *testing.T, name string) *checkpoint.Key {
	t.Helper()
	key, err := checkpoint.GenerateKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signAs(t *testing.T, c checkpoint.Checkpoint, keys ...*checkpoint.Key) []byte {
	t.Helper()
	note, err := checkpoint.Sign(c, keys[0].Signer())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys[1:] {
		own, err := checkpoint.Sign(c, key.Cosigner(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		if note, err = checkpoint.Merge(note, own); err != nil {
			t.Fatal(err)
		}
	}
	return note
}

// An answer counts only with the signature of a pinned key, whatever else it has.
func TestPinned(t *testing.T) {
	t.Parallel()
	log, witness, stranger := newKey(t, "log.example"), newKey(t, "witness.example"), newKey(t, "witness.example")
	c := checkpoint.Checkpoint{Origin: log.Name(), Size: 3, Root: sha256.Sum256([]byte("x"))}
	good := signAs(t, c, log, stranger, witness)
	for name, test := range map[string]struct {
		note []byte
		pins []string
		want error
	}{
		"its own":                   {good, []string{witness.Verifier()}, nil},
		"the key for cosignatures":  {good, []string{witness.CosignatureVerifier()}, nil},
		"one of several keys":       {good, []string{newKey(t, "witness.example").Verifier(), witness.Verifier()}, nil},
		"of the log only":           {signAs(t, c, log), []string{witness.Verifier()}, checkpoint.ErrUncosigned},
		"of a stranger of its name": {signAs(t, c, log, stranger), []string{witness.Verifier()}, checkpoint.ErrUncosigned},
		"over another state":        {append([]byte("log.example\n4"), good[len("log.example\n4"):]...), []string{witness.Verifier()}, checkpoint.ErrUncosigned},
		"no checkpoint":             {[]byte("hello\n"), []string{witness.Verifier()}, checkpoint.ErrUncosigned},
	} {
		pinned, err := checkpoint.NewPinned(answers{test.note}, test.pins...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pinned.Latest(t.Context(), c.Origin); !errors.Is(err, test.want) {
			t.Errorf("%s: latest: %v", name, err)
		}
		if _, err := pinned.Cosign(t.Context(), nil, 0, nil); !errors.Is(err, test.want) {
			t.Errorf("%s: cosign: %v", name, err)
		}
	}
	none, err := checkpoint.NewPinned(answers{nil}, witness.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	if note, err := none.Latest(t.Context(), c.Origin); note != nil || err != nil {
		t.Errorf("a witness that knows nothing: %q, %v", note, err)
	}
	for _, pins := range [][]string{nil, {"nonsense"}, {""}} {
		if _, err := checkpoint.NewPinned(answers{nil}, pins...); !errors.Is(err, checkpoint.ErrUntrusted) {
			t.Errorf("pinned to %q: %v", pins, err)
		}
	}
}

// answers is a witness with one answer.
type answers struct{ note []byte }

func (a answers) Name() string                                   { return "witness.example" }
func (a answers) Latest(context.Context, string) ([]byte, error) { return a.note, nil }
func (a answers) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return a.note, nil
}

// A witness finds out that somebody has put a checkpoint into its store, and neither
// shows it nor signs after it until the store is restored.
func TestEditedStore(t *testing.T) {
	t.Parallel()
	log, own, next := newKey(t, "log.example"), newKey(t, "witness.example"), newKey(t, "witness.example")
	store, err := checkpoint.NewFolderStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key := own
	w := checkpoint.NewKeeper(func() *checkpoint.Key { return key }, store, func(string) []string { return []string{log.Verifier()} })
	first := checkpoint.Checkpoint{Origin: log.Name(), Size: 1, Root: sha256.Sum256([]byte("x"))}
	cosigned, err := w.Cosign(t.Context(), signAs(t, first, log), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, edited := range map[string][]byte{
		"a checkpoint that the log alone has signed": signAs(t, first, log),
		"one that a stranger has signed":             signAs(t, first, log, next),
		"text":                                       []byte("hello\n"),
		"that of another log":                        signAs(t, checkpoint.Checkpoint{Origin: "other.example", Size: 1}, newKey(t, "other.example"), own),
	} {
		if err := store.Save(t.Context(), first.Origin, edited); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Latest(t.Context(), first.Origin); !errors.Is(err, checkpoint.ErrEdited) {
			t.Errorf("%s: latest: %v", name, err)
		}
		if _, err := w.Cosign(t.Context(), signAs(t, first, log), 1, nil); !errors.Is(err, checkpoint.ErrEdited) {
			t.Errorf("%s: cosign: %v", name, err)
		}
	}
	if err := store.Save(t.Context(), first.Origin, cosigned); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Cosign(t.Context(), signAs(t, first, log), 1, nil); err != nil {
		t.Errorf("after the store was restored: %v", err)
	}
	// After a change of its key, what it has signed before is still its own.
	key = next
	w.OwnKeys(func() ([]string, error) { return []string{own.Verifier(), next.Verifier()}, nil })
	if _, err := w.Cosign(t.Context(), signAs(t, first, log), 1, nil); err != nil {
		t.Errorf("after a change of keys: %v", err)
	}
}
