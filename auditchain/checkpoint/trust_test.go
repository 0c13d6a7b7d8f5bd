package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// Of two states of logs, the later has grown from the earlier exactly if their
// leaves agree up to the earlier's size.
func TestCheckGrowthOfAnyTwoStates(t *testing.T) {
	t.Parallel()
	const most = 20
	rapid.Check(t, func(rt *rapid.T) {
		fork := rapid.IntRange(0, most).Draw(rt, "fork")
		honest := newHistory(t, "o", most, func(i int) string { return fmt.Sprint(i) })
		forked := newHistory(t, "o", most, func(i int) string {
			if i >= fork {
				return fmt.Sprint("x", i)
			}
			return fmt.Sprint(i)
		})
		from, to := int64(rapid.IntRange(0, most).Draw(rt, "from")), int64(rapid.IntRange(0, most).Draw(rt, "to"))
		grown := from == 0 || from <= to && from <= int64(fork)
		err := CheckGrowth(honest.states[from], forked.states[to], forked.proof(t, from, to))
		if (err == nil) != grown || err != nil && !errors.Is(err, ErrInconsistent) {
			rt.Fatalf("from %d to %d, forked at %d: %v", from, to, fork, err)
		}
	})
}

// A proof of another length, of other hashes or of other sizes proves nothing.
func TestFalseGrowthProofs(t *testing.T) {
	t.Parallel()
	h := newHistory(t, "o", 20, func(i int) string { return fmt.Sprint(i) })
	good := h.proof(t, 5, 13)
	changed := slices.Clone(good)
	changed[1][0] ^= 1
	for name, p := range map[string]tlog.TreeProof{
		"none": nil, "shorter": good[:len(good)-1], "longer": append(slices.Clone(good), tlog.Hash{}), "changed": changed,
		"reversed": {good[2], good[1], good[0]}, "of other sizes": h.proof(t, 5, 12),
	} {
		if err := CheckGrowth(h.states[5], h.states[13], p); !errors.Is(err, ErrInconsistent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckGrowth(h.states[5], h.states[13], good); err != nil {
		t.Errorf("the genuine one: %v", err)
	}
	foreign := h.states[13]
	foreign.Origin = "p"
	if err := CheckGrowth(h.states[5], foreign, good); !errors.Is(err, ErrInconsistent) {
		t.Errorf("of another log: %v", err)
	}
}

// A witness that cannot read or keep its state signs nothing: the next request
// could be of another history.
func TestKeeperWithoutItsStore(t *testing.T) {
	t.Parallel()
	logKey, witnessKey := newKey(t, "o"), newKey(t, "w")
	folder := filepath.Join(t.TempDir(), "seen")
	store, err := NewFolderStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	keeper := NewKeeper(func() *Key { return witnessKey }, store, func(string) []string { return []string{logKey.Verifier()} })
	h := newHistory(t, "o", 3, func(i int) string { return fmt.Sprint(i) })
	if _, err := keeper.Cosign(t.Context(), sign(t, h.states[1], logKey), 0, nil); err != nil {
		t.Fatal(err)
	}
	next := func() error {
		_, err := keeper.Cosign(t.Context(), sign(t, h.states[2], logKey), 1, h.proof(t, 1, 2))
		return err
	}
	file := store.name("o")
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "cut": string(kept[:5]), "text": "hello\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := next(); !errors.Is(err, ErrMalformed) {
			t.Errorf("what was kept is %s: %v", name, err)
		}
	}
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := next(); err == nil {
		t.Error("a state that cannot be read is taken for none")
	}
	if _, err := keeper.Latest(t.Context(), "o"); err == nil {
		t.Error("a state that cannot be read is shown as none")
	}
	if err := errors.Join(os.Remove(file), os.WriteFile(file, kept, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := next(); err != nil {
		t.Errorf("after the state was restored: %v", err)
	}
	if keeper.Name() != "w" {
		t.Errorf("the keeper is named %s", keeper.Name())
	}
}

// Each log has its own file, whatever its origin is, and it is private.
func TestFolderStoreKeepsLogsApart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	store, err := NewFolderStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	origins := []string{"a", "A", "a/b", "../a", "a\x00", "", strings.Repeat("x", 5000), "é"}
	for _, origin := range origins {
		if err := store.Save(context.Background(), origin, []byte("note of "+origin)); err != nil {
			t.Errorf("%.20q: %v", origin, err)
		}
	}
	again, err := NewFolderStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, origin := range origins {
		if text, err := again.Load(context.Background(), origin); err != nil || string(text) != "note of "+origin {
			t.Errorf("%.20q: %.40q, %v", origin, text, err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != len(origins) {
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", file.Name(), info.Mode(), err)
		}
	}
}

func TestSigners(t *testing.T) {
	t.Parallel()
	a, b := newKey(t, "log.example/1"), newKey(t, "b")
	c := Checkpoint{Origin: "log.example/1", Size: 1}
	for want, text := range map[string][]byte{
		"[]": []byte("no note"), "[log.example/1]": sign(t, c, a, newKey(t, "log.example/1")), "[log.example/1 b]": sign(t, c, a, b), "[b]": sign(t, c, b),
	} {
		if got := fmt.Sprint(Signers(text)); got != want {
			t.Errorf("%q: signers %s, want %s", text, got, want)
		}
	}
}

// Only what Parse reads back is signed: an origin with a line break could pose as
// a checkpoint of another size.
func TestOriginsThatCannotBeSigned(t *testing.T) {
	t.Parallel()
	key := newKey(t, "log.example/1")
	for _, origin := range []string{"", "a\n5", "a\n"} {
		if text, err := Sign(Checkpoint{Origin: origin, Size: 1}, key.Signer()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q was signed: %q, %v", origin, text, err)
		}
	}
	if _, err := Sign(Checkpoint{Origin: "a", Size: -1}, key.Signer()); !errors.Is(err, ErrMalformed) {
		t.Errorf("a negative size: %v", err)
	}
}

// The newest of several cosignature times counts, and one that no calendar has is
// not shown.
func TestCosignedAt(t *testing.T) {
	t.Parallel()
	logKey, one, two := newKey(t, "log.example/1"), newKey(t, "w1"), newKey(t, "w2")
	c := Checkpoint{Origin: "log.example/1", Size: 7, Root: sha256.Sum256(nil)}
	cosign := func(signers ...note.Signer) *Signed {
		t.Helper()
		text, err := Sign(c, append([]note.Signer{logKey.Signer()}, signers...)...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Open(text, keySet(t, logKey, one, two))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	early, late := time.Unix(1700000000, 0), time.Unix(1800000000, 0)
	for name, test := range map[string]struct {
		got  *Signed
		want int64 // 0 for none
	}{
		"none":             {cosign(), 0},
		"one":              {cosign(one.Cosigner(early)), early.Unix()},
		"newest last":      {cosign(one.Cosigner(early), two.Cosigner(late)), late.Unix()},
		"newest first":     {cosign(one.Cosigner(late), two.Cosigner(early)), late.Unix()},
		"the year 9999":    {cosign(one.Cosigner(time.Unix(253402300799, 0))), 253402300799},
		"the year 10000":   {cosign(one.Cosigner(time.Unix(253402300800, 0))), 0},
		"an old signature": {cosign(one.Signer()), 0},
	} {
		if at := test.got.CosignedAt; at.IsZero() != (test.want == 0) || test.want != 0 && at.Unix() != test.want {
			t.Errorf("%s: %v, want %d", name, at, test.want)
		}
	}
}
