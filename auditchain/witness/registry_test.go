package witness_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/proof"
	"github.com/agentd/agentd/auditchain/witness"
)

func openRegistry(t *testing.T, folder string) *witness.Registry {
	t.Helper()
	registry, err := witness.OpenRegistry(folder)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// rotations returns the proofs of a log's changes of keys.
func rotations(t *testing.T, l *auditchain.Log) [][]byte {
	t.Helper()
	proofs, err := l.Rotations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var texts [][]byte
	for _, p := range proofs {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

func TestRegistryRefusals(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	registry := openRegistry(t, folder)
	log, other := openLog(t, t.TempDir(), "a"), openLog(t, t.TempDir(), "b")
	signed, foreign := grow(t, log, 3), grow(t, other, 3)
	keys, foreignKeys := audittest.PublicKeys(t, log.Reader), audittest.PublicKeys(t, other.Reader)
	namesake, err := checkpoint.GenerateKey(log.Origin())
	if err != nil {
		t.Fatal(err)
	}
	changed := []byte(strings.Replace(string(signed), "\n3\n", "\n4\n", 1))

	type row struct {
		owner  string
		signed []byte
		keys   []string
		proofs [][]byte
		want   error
	}
	check := func(rows map[string]row) {
		t.Helper()
		for name, r := range rows {
			if err := registry.Accept(r.owner, r.signed, r.keys, r.proofs); !errors.Is(err, r.want) {
				t.Errorf("%s: got %v, want %v", name, err, r.want)
			}
		}
	}
	check(map[string]row{ // of a log that is not known yet
		"no checkpoint":        {"agent://a", nil, keys, nil, checkpoint.ErrMalformed},
		"text":                 {"agent://a", []byte("hello\n"), keys, nil, checkpoint.ErrMalformed},
		"no keys":              {"agent://a", signed, nil, nil, checkpoint.ErrUntrusted},
		"no key":               {"agent://a", signed, []string{"nonsense"}, nil, checkpoint.ErrUntrusted},
		"the key of another":   {"agent://a", signed, foreignKeys, nil, checkpoint.ErrUntrusted},
		"a namesake's key":     {"agent://a", signed, []string{namesake.Verifier()}, nil, checkpoint.ErrUntrusted},
		"a changed checkpoint": {"agent://a", changed, keys, nil, checkpoint.ErrSignature},
	})
	if files, err := os.ReadDir(folder); err != nil || len(files) != 0 || registry.Keys(log.Origin()) != nil {
		t.Fatalf("what was rejected is kept: %v, %v", files, err)
	}
	if err := registry.Accept("agent://a", signed, keys, nil); err != nil {
		t.Fatal(err)
	}
	check(map[string]row{ // of one that is
		"the same again":        {"agent://a", signed, keys, nil, nil},
		"with further keys":     {"agent://a", signed, append(slices.Clone(keys), namesake.Verifier()), nil, nil},
		"without keys":          {"agent://a", signed, nil, nil, nil},
		"another log":           {"agent://a", foreign, foreignKeys, nil, checkpoint.ErrInconsistent},
		"by another agent":      {"agent://b", signed, keys, nil, checkpoint.ErrInconsistent},
		"a changed checkpoint":  {"agent://a", changed, keys, nil, checkpoint.ErrSignature},
		"a proof that is none":  {"agent://a", signed, keys, [][]byte{[]byte("{}")}, proof.ErrMalformed},
		"an agent with no name": {"", signed, keys, nil, checkpoint.ErrInconsistent},
	})
	if got := registry.Keys(log.Origin()); !slices.Equal(got, keys) {
		t.Errorf("a key that nothing introduced is trusted: %v", got)
	}
	registry.Keys(log.Origin())[0] = "changed by a caller"
	if got := registry.Keys(log.Origin()); !slices.Equal(got, keys) {
		t.Errorf("the registry's keys were changed from outside: %v", got)
	}
}

// Only a proof that a trusted key has signed, of a change of keys in that very log,
// introduces a key.
func TestRegistryFollowsGenuineRotationsOnly(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	registry := openRegistry(t, folder)
	log, other := openLog(t, t.TempDir(), "a"), openLog(t, t.TempDir(), "b")
	signed, foreign := grow(t, log, 1), grow(t, other, 1)
	ordinary, err := log.Prove(t.Context(), 1, auditchain.ProveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	noChange, err := json.Marshal(ordinary)
	if err != nil {
		t.Fatal(err)
	}
	for l, note := range map[*auditchain.Log][]byte{log: signed, other: foreign} {
		if err := registry.Accept("agent://"+l.Origin(), note, audittest.PublicKeys(t, l.Reader), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := l.RotateKey(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	owner, now := "agent://"+log.Origin(), grow(t, log, 1)
	grow(t, other, 1)
	genuine, stranger := rotations(t, log), rotations(t, other)
	for name, test := range map[string]struct {
		proofs [][]byte
		want   error
	}{
		"none":                   {nil, checkpoint.ErrUntrusted},
		"those of another log":   {stranger, checkpoint.ErrUntrusted},
		"of an ordinary record":  {[][]byte{noChange}, proof.ErrFalse},
		"a key that was swapped": {[][]byte{[]byte(strings.Replace(string(genuine[0]), "key-rotated", "key-replaced", 1))}, proof.ErrFalse},
	} {
		err := registry.Accept(owner, now, audittest.PublicKeys(t, log.Reader), test.proofs)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if len(registry.Keys(log.Origin())) != 1 {
			t.Fatalf("%s: the new key is trusted", name)
		}
	}
	if err := registry.Accept(owner, now, nil, genuine); err != nil {
		t.Fatal(err)
	}
	want := audittest.PublicKeys(t, log.Reader)
	for _, r := range []*witness.Registry{registry, openRegistry(t, folder)} { // the second one after a restart
		if got := r.Keys(log.Origin()); len(got) != 2 || !slices.Equal(got, want) {
			t.Errorf("trusts %v, want %v", got, want)
		}
	}
}

// Of two first logs that an agent shows at once, one is trusted.
func TestRegistryTrustsOneFirstLog(t *testing.T) {
	t.Parallel()
	registry := openRegistry(t, t.TempDir())
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		l := openLog(t, t.TempDir(), "a")
		signed, keys := grow(t, l, 1), audittest.PublicKeys(t, l.Reader)
		wg.Go(func() { errs[i] = registry.Accept("agent://a", signed, keys, nil) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), checkpoint.ErrInconsistent) {
		t.Errorf("got %v", errs)
	}
}

// An operator may remove a file to trust the next log; other files in the folder
// mean nothing.
func TestRemovedRegistryFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "notes.json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := openLog(t, t.TempDir(), "a"), openLog(t, t.TempDir(), "a")
	if err := openRegistry(t, folder).Accept("agent://a", grow(t, first, 1), audittest.PublicKeys(t, first.Reader), nil); err != nil {
		t.Fatal(err)
	}
	note, keys := grow(t, second, 1), audittest.PublicKeys(t, second.Reader)
	if err := openRegistry(t, folder).Accept("agent://a", note, keys, nil); !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("before the file is removed: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.log.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := openRegistry(t, folder).Accept("agent://a", note, keys, nil); err != nil {
		t.Errorf("after the file was removed: %v", err)
	}
	if _, err := witness.OpenRegistry(filepath.Join(folder, "notes.json")); err == nil {
		t.Error("a registry in a file")
	}
}

// A copy of a log that went another way, or an old copy, is rejected whoever shows
// it, and also after the witness was started again.
func TestOldAndForkedLogs(t *testing.T) {
	t.Parallel()
	kept := t.TempDir()
	own, log := openLog(t, t.TempDir(), "witness"), openLog(t, t.TempDir(), "a")
	server := serve(t, own, kept)
	old := grow(t, log, 5)
	audittest.Close(t, log)
	copied := audittest.CopyLog(t, log.Path())
	log = audittest.OpenAt(t, log.Path(), auditchain.Options{})
	grow(t, log, 5)
	if err := cosign(t, remote(server, "agent://a", log), log); err != nil {
		t.Fatal(err)
	}
	fork := audittest.OpenAt(t, copied, auditchain.Options{})
	for range 2 {
		w := remote(server, "agent://a", fork)
		if _, err := w.Cosign(t.Context(), old, 0, nil); !errors.Is(err, checkpoint.ErrInconsistent) {
			t.Errorf("an older checkpoint: %v", err)
		}
		for _, n := range []int{5, 20} { // as long as the original, and longer
			if _, err := w.Cosign(t.Context(), grow(t, fork, n), 10, nil); !errors.Is(err, checkpoint.ErrInconsistent) {
				t.Errorf("a fork, %d records on: %v", n, err)
			}
		}
		if _, err := w.Cosign(t.Context(), grow(t, fork, 1), 5, nil); !errors.Is(err, checkpoint.ErrStale) {
			t.Errorf("from a state that the witness no longer holds: %v", err)
		}
		server = serve(t, own, kept)
	}
	grow(t, log, 1)
	if err := cosign(t, remote(server, "agent://a", log), log); err != nil {
		t.Errorf("the original, after that: %v", err)
	}
}

// What fails inside the witness is reported without its cause, which may name
// files of the witness's machine.
func TestInternalFaultsStayInside(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "secret-folder")
	own, log := openLog(t, t.TempDir(), "witness"), openLog(t, t.TempDir(), "a")
	server := serve(t, own, folder)
	signed := grow(t, log, 1)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	var internal error
	w := witness.NewRemote("w", func(ctx context.Context, q []byte) (a []byte, err error) {
		a, internal = server.Answer(ctx, "agent://a", q)
		return a, nil
	}, log)
	_, err := w.Cosign(t.Context(), signed, 0, nil)
	if !errors.Is(err, witness.ErrRefused) || strings.Contains(err.Error(), "secret-folder") {
		t.Errorf("the agent learns %v", err)
	}
	if internal == nil || !strings.Contains(internal.Error(), "secret-folder") {
		t.Errorf("the witness's own log has %v", internal)
	}
}
