package sidecar_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
)

func database(t *testing.T) string { return filepath.Join(t.TempDir(), "audit.db") }

func newKey(t *testing.T) *checkpoint.Key {
	t.Helper()
	key, err := checkpoint.GenerateKey("log.example/1")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func wantCode(t *testing.T, what string, err error, code auditerr.Code) {
	t.Helper()
	if auditerr.CodeOf(err) != code {
		t.Errorf("%s: %v, want code %v", what, err, code)
	}
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	path, key := database(t), newKey(t)
	_, err := sidecar.ReadKey(path, sidecar.KeySuffix)
	wantCode(t, "missing", err, auditerr.CodeKeyMissing)
	if err := sidecar.WriteKey(path, sidecar.KeySuffix, key); err != nil {
		t.Fatal(err)
	}
	again, err := sidecar.ReadKey(path, sidecar.KeySuffix)
	if err != nil || again.Verifier() != key.Verifier() {
		t.Errorf("%v, %v", again, err)
	}
	info, err := os.Stat(path + sidecar.KeySuffix)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o610, 0o644} {
		if err := os.Chmod(path+sidecar.KeySuffix, mode); err != nil {
			t.Fatal(err)
		}
		_, err = sidecar.ReadKey(path, sidecar.KeySuffix)
		wantCode(t, mode.String(), err, auditerr.CodeKeyUnsafe)
	}
	if err := os.WriteFile(path+sidecar.NextKeySuffix, []byte("PRIVATE+KEY+x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = sidecar.ReadKey(path, sidecar.NextKeySuffix)
	wantCode(t, "no key", err, auditerr.CodeKeyUnsafe)
	if err := os.Mkdir(path+".folder", 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = sidecar.ReadKey(path, ".folder")
	wantCode(t, "a folder", err, auditerr.CodeIO)
	wantCode(t, "below a file", sidecar.WriteKey(path+sidecar.NextKeySuffix+"/x", sidecar.KeySuffix, key), auditerr.CodeIO)
}

func TestNextKeyIsRemoved(t *testing.T) {
	t.Parallel()
	path := database(t)
	if err := sidecar.WriteKey(path, sidecar.NextKeySuffix, newKey(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is gone
		if err := sidecar.RemoveNextKey(path); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path + sidecar.NextKeySuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Error("it is still there:", err)
		}
	}
	if err := os.MkdirAll(path+sidecar.NextKeySuffix+"/full", 0o700); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a folder in its place", sidecar.RemoveNextKey(path), auditerr.CodeIO)
}

func TestPublicKeys(t *testing.T) {
	t.Parallel()
	path := database(t)
	want := []string{}
	if keys, err := sidecar.ReadPublicKeys(path); err != nil || len(keys) != 0 {
		t.Errorf("without a file: %q, %v", keys, err)
	}
	for range 3 {
		key := newKey(t).Verifier()
		want = append(want, key)
		for range 2 { // adding a key again changes nothing
			if err := sidecar.AddPublicKey(path, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	if keys, err := sidecar.ReadPublicKeys(path); err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v; want %q", keys, err, want)
	}
	text, err := os.ReadFile(path + sidecar.PublicSuffix)
	if err != nil || string(text) != strings.Join(want, "\n")+"\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	info, err := os.Stat(path + sidecar.PublicSuffix)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	unreadable := database(t)
	if err := os.Mkdir(unreadable+sidecar.PublicSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = sidecar.ReadPublicKeys(unreadable)
	wantCode(t, "a folder in its place", err, auditerr.CodeIO)
	wantCode(t, "adding to it", sidecar.AddPublicKey(unreadable, "k"), auditerr.CodeIO)
}

func TestCheckpointFile(t *testing.T) {
	t.Parallel()
	path := database(t)
	if note, err := sidecar.ReadCheckpoint(path); note != nil || err != nil {
		t.Errorf("without a file: %q, %v", note, err)
	}
	for _, text := range []string{"first, and longer", "second"} {
		if err := sidecar.WriteCheckpoint(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if note, err := sidecar.ReadCheckpoint(path); string(note) != text || err != nil {
			t.Errorf("%q, %v", note, err)
		}
	}
	info, err := os.Stat(path + sidecar.CheckpointSuffix)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	unreadable := database(t)
	if err := os.Mkdir(unreadable+sidecar.CheckpointSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = sidecar.ReadCheckpoint(unreadable)
	wantCode(t, "a folder in its place", err, auditerr.CodeIO)
}

// What a killed writer left is removed; the files themselves, and those of other
// logs in the folder, stay.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	path := database(t)
	kept := []string{path, path + sidecar.KeySuffix, path + sidecar.CheckpointSuffix, path + "2" + sidecar.KeySuffix + ".tmp-1", path + ".tmp-1"}
	removed := []string{path + sidecar.KeySuffix + ".tmp-17", path + sidecar.NextKeySuffix + ".tmp-1", path + sidecar.PublicSuffix + ".tmp-x", path + sidecar.CheckpointSuffix + ".tmp-1"}
	for _, name := range slices.Concat(kept, removed) {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sidecar.RemoveLeftovers(path)
	for _, name := range kept {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range removed {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	sidecar.RemoveLeftovers("/no/such/folder/audit.db")
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	path := database(t)
	lock, err := sidecar.Lock(path)
	if auditerr.CodeOf(err) == auditerr.CodeUnsupported {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = sidecar.Lock(path)
	wantCode(t, "a second writer", err, auditerr.CodeLocked)
	if !strings.Contains(err.Error(), "process ") {
		t.Errorf("the error does not name the holder: %v", err)
	}
	lock.Release()
	again, err := sidecar.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
	_, err = sidecar.Lock(filepath.Join(path, "no", "such"))
	wantCode(t, "in a folder that does not exist", err, auditerr.CodeIO)
}

func TestSync(t *testing.T) {
	t.Parallel()
	if err := sidecar.Sync(database(t)); err != nil {
		t.Error(err)
	}
	wantCode(t, "a folder that does not exist", sidecar.Sync(filepath.Join(database(t), "x")), auditerr.CodeIO)
}
