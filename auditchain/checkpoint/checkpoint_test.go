package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

func newKey(t testing.TB, name string) *Key {
	t.Helper()
	key, err := GenerateKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keySet(t testing.TB, keys ...*Key) *Keys {
	t.Helper()
	set := &Keys{}
	for _, key := range keys {
		for _, verifier := range []string{key.Verifier(), key.CosignatureVerifier()} {
			if err := set.Add(verifier); err != nil {
				t.Fatal(err)
			}
		}
	}
	return set
}

func sign(t testing.TB, c Checkpoint, keys ...*Key) []byte {
	t.Helper()
	var out []byte
	for _, key := range keys {
		note, err := Sign(c, key.Signer())
		if err == nil && out != nil {
			note, err = Merge(out, note)
		}
		if err != nil {
			t.Fatal(err)
		}
		out = note
	}
	return out
}

func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	for _, c := range []Checkpoint{
		{Origin: "a", Size: 0, Root: sha256.Sum256(nil)},
		{Origin: "agentd.audit/x y/1", Size: 1<<63 - 1, Root: sha256.Sum256([]byte("x"))},
	} {
		if got, err := Parse(c.Text()); err != nil || got != c {
			t.Errorf("%+v became %+v, %v", c, got, err)
		}
	}
	if got, err := Parse("a\n1\n" + strings.Split(Checkpoint{}.Text(), "\n")[2] + "\nextension\n"); err != nil || got.Size != 1 {
		t.Errorf("with an extension line: %+v, %v", got, err)
	}
}

func TestParseRefusals(t *testing.T) {
	t.Parallel()
	root := strings.Split(Checkpoint{}.Text(), "\n")[2]
	for _, text := range []string{
		"", "a\n", "a\n1\n", "a\n1\n" + root, "\n1\n" + root + "\n", "a\n01\n" + root + "\n", "a\n-1\n" + root + "\n",
		"a\n+1\n" + root + "\n", "a\n9223372036854775808\n" + root + "\n", "a\n1\nAAAA\n", "a\n1\n" + root[:43] + "\n",
		"a\n1\n" + strings.Replace(root, "=", "\r=", 1) + "\n", "a\n1\n" + root[:42] + "B=\n",
	} {
		if c, err := Parse(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	logKey, other, witness := newKey(t, "log.example/1"), newKey(t, "log.example/1"), newKey(t, "witness.example")
	c := Checkpoint{Origin: "log.example/1", Size: 7, Root: sha256.Sum256([]byte("root"))}
	signed := sign(t, c, logKey, witness)

	got, err := Open(signed, keySet(t, logKey, witness))
	if err != nil || got.Checkpoint != c || got.Key != logKey.Verifier() || fmt.Sprint(got.Cosigners) != "[witness.example]" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = Open(signed, keySet(t, logKey)); err != nil || got.Cosigners != nil {
		t.Errorf("a witness that is not known: %+v, %v", got, err)
	}
	for name, test := range map[string]struct {
		note []byte
		keys *Keys
		want error
	}{
		"no key":             {signed, &Keys{}, ErrUntrusted},
		"another key":        {signed, keySet(t, other), ErrUntrusted},
		"the witness alone":  {signed, keySet(t, witness), ErrUntrusted},
		"text changed":       {[]byte(strings.Replace(string(signed), "\n7\n", "\n8\n", 1)), keySet(t, logKey), ErrSignature},
		"a false cosigner":   {[]byte(strings.Replace(string(signed), "\n7\n", "\n8\n", 1)), keySet(t, witness), ErrSignature},
		"not a note":         {[]byte("hello"), keySet(t, logKey), ErrMalformed},
		"a note of no state": {noteOf(t, "hello\n", logKey), keySet(t, logKey), ErrMalformed},
		"too long":           {make([]byte, MaxBytes+1), keySet(t, logKey), ErrMalformed},
	} {
		if _, err := Open(test.note, test.keys); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	key := newKey(t, "log.example/1")
	again, err := ParseKey(key.Secret() + "\n")
	if err != nil || again.Verifier() != key.Verifier() || again.Name() != "log.example/1" {
		t.Errorf("%v, %v", again, err)
	}
	if text := fmt.Sprintf("%v %+v %s", key, key, key); strings.Contains(text, key.Secret()) {
		t.Error("a printed key shows its secret")
	}
	for _, secret := range []string{"", "PRIVATE+KEY", key.Verifier(), strings.Replace(key.Secret(), "log", "lag", 1), key.Secret()[:60]} {
		_, err := ParseKey(secret)
		if err == nil || len(secret) > 20 && strings.Contains(err.Error(), secret[20:]) {
			t.Errorf("%q: %v", secret, err)
		}
	}
	for _, name := range []string{"", "a b", "a+b"} {
		if _, err := GenerateKey(name); err == nil {
			t.Errorf("a key named %q", name)
		}
	}
	set := keySet(t, key)
	if !set.Contains(key.Verifier()) || set.Contains(newKey(t, "log.example/1").Verifier()) || set.Contains("x") {
		t.Error("a set does not contain what it contains")
	}
	if _, err := NewKeys(key.Verifier(), "nonsense"); !errors.Is(err, ErrUntrusted) {
		t.Error(err)
	}
}

// history is a log of leaves, with every state it went through.
type history struct {
	hashes []tlog.Hash // stored hashes, see package tlog
	states []Checkpoint
}

func (h *history) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		out[i] = h.hashes[index]
	}
	return out, nil
}

func newHistory(t testing.TB, origin string, n int, leaf func(i int) string) *history {
	h := &history{states: []Checkpoint{{Origin: origin, Root: sha256.Sum256(nil)}}}
	for i := range n {
		hashes, err := tlog.StoredHashes(int64(i), []byte(leaf(i)), h)
		if err != nil {
			t.Fatal(err)
		}
		h.hashes = append(h.hashes, hashes...)
		root, err := tlog.TreeHash(int64(i+1), h)
		if err != nil {
			t.Fatal(err)
		}
		h.states = append(h.states, Checkpoint{Origin: origin, Size: int64(i + 1), Root: root})
	}
	return h
}

func (h *history) proof(t testing.TB, from, to int64) tlog.TreeProof {
	if from == 0 || from >= to {
		return nil
	}
	p, err := tlog.ProveTree(to, from, h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeeper(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const origin = "log.example/1"
	logKey := newKey(t, origin)
	folder, err := NewFolderStore(filepath.Join(t.TempDir(), "seen"))
	if err != nil {
		t.Fatal(err)
	}
	witnessKey := newKey(t, "witness.example")
	keeper := NewKeeper(func() *Key { return witnessKey }, folder, func(o string) []string {
		if o == origin {
			return []string{logKey.Verifier()}
		}
		return nil
	})
	honest := newHistory(t, origin, 20, func(i int) string { return fmt.Sprint(i) })
	forged := newHistory(t, origin, 20, func(i int) string { return fmt.Sprint(i, i > 7) })

	step := func(h *history, from, to int64) error {
		cosigned, err := keeper.Cosign(ctx, sign(t, h.states[to], logKey), from, h.proof(t, from, to))
		if err != nil {
			return err
		}
		got, err := Open(cosigned, keySet(t, logKey, witnessKey))
		if err != nil || fmt.Sprint(got.Cosigners) != "[witness.example]" || time.Since(got.CosignedAt) > time.Minute {
			t.Errorf("to %d: %+v, %v", to, got, err)
		}
		kept, err := keeper.Latest(ctx, origin)
		if err != nil || string(kept) != string(cosigned) {
			t.Errorf("to %d: the witness keeps %q, %v", to, kept, err)
		}
		return nil
	}
	for _, s := range [][2]int64{{0, 5}, {5, 5}, {5, 12}, {12, 13}} {
		if err := step(honest, s[0], s[1]); err != nil {
			t.Errorf("from %d to %d: %v", s[0], s[1], err)
		}
	}
	for name, test := range map[string]struct {
		err  error
		want error
	}{
		"a shorter log":           {step(honest, 13, 5), ErrInconsistent},
		"another log, as long":    {step(forged, 13, 13), ErrInconsistent},
		"another log, longer":     {step(forged, 13, 20), ErrInconsistent},
		"the wrong state to grow": {step(honest, 5, 20), ErrStale},
		"from nothing":            {step(forged, 0, 20), ErrStale},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	if _, err := keeper.Cosign(ctx, sign(t, honest.states[20], newKey(t, origin)), 13, honest.proof(t, 13, 20)); !errors.Is(err, ErrUntrusted) {
		t.Errorf("signed by another: %v", err)
	}
	if _, err := keeper.Cosign(ctx, []byte("x"), 0, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("no note: %v", err)
	}
	if err := step(honest, 13, 20); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

// Of two histories that branch, a witness signs one only, however the requests
// arrive.
func TestKeeperSignsOneBranch(t *testing.T) {
	t.Parallel()
	const origin = "log.example/1"
	logKey := newKey(t, origin)
	for range 20 {
		folder, err := NewFolderStore(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		keeper := NewKeeper(func() *Key { return newKey(t, "w") }, folder, func(string) []string { return []string{logKey.Verifier()} })
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			h := newHistory(t, origin, 3, func(n int) string { return fmt.Sprint(i, n) })
			note := sign(t, h.states[3], logKey)
			wg.Go(func() { _, errs[i] = keeper.Cosign(context.Background(), note, 0, nil) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("got %v", errs)
		}
	}
}

func TestFolderStoreErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFolderStore(file); err == nil {
		t.Error("a folder in the place of a file")
	}
	folder := filepath.Join(t.TempDir(), "seen")
	store, err := NewFolderStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := store.Load(context.Background(), "../../etc/passwd"); text != nil || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	os.RemoveAll(folder)
	if err := store.Save(context.Background(), "a", []byte("x")); err == nil {
		t.Error("saved into a folder that is gone")
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	a, b := newKey(t, "log.example/1"), newKey(t, "b")
	c := Checkpoint{Origin: "log.example/1", Size: 1}
	one, two := sign(t, c, a), sign(t, c, a, b)
	merged, err := Merge(two, one)
	if err != nil || string(merged) != string(two) {
		t.Errorf("%q, %v", merged, err)
	}
	if _, err := Merge(one, sign(t, Checkpoint{Origin: "log.example/1", Size: 2}, a)); !errors.Is(err, ErrInconsistent) {
		t.Error(err)
	}
	for _, text := range []string{"", "x", "a\n\n", "a\n\nb"} {
		if _, err := Merge(one, []byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key := newKey(f, "log.example/1")
	c := Checkpoint{Origin: "log.example/1", Size: 7, Root: sha256.Sum256([]byte("root"))}
	good := sign(f, c, key)
	f.Add(good)
	f.Add(sign(f, c, key, newKey(f, "w")))
	f.Add([]byte("log.example/1\n7\nAAAA\n\n— log.example/1 AAAA\n"))
	keys := keySet(f, key)
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Merge(good, text)
		_, _ = ParseKey(string(text))
		if c, err := Parse(string(text)); err == nil && !strings.HasPrefix(string(text), c.Text()) {
			t.Fatalf("%q parsed as %q", text, c.Text())
		}
		got, err := Open(text, keys)
		switch {
		case err == nil && got.Checkpoint != c:
			t.Fatalf("a forged checkpoint passes: %q", text)
		case err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrSignature) && !errors.Is(err, ErrUntrusted):
			t.Fatal(err)
		}
	})
}
