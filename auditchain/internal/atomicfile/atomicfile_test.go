package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	name := filepath.Join(folder, "file")
	for _, text := range []string{"first, and longer", "second"} {
		if err := Replace(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	wantFiles(t, folder, "file")
}

func TestReplaceFailsWithoutATrace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	name := filepath.Join(folder, "busy")
	if err := os.MkdirAll(filepath.Join(name, "not-empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(name, []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	wantFiles(t, folder, "busy")
	if err := Replace(filepath.Join(folder, "no", "such"), nil, 0o600); err == nil {
		t.Error("a file in a folder that does not exist")
	}
}

func wantFiles(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %v", got)
	}
}
