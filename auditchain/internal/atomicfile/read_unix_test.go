//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	name := func(base string) string { return filepath.Join(folder, base) }
	if err := os.WriteFile(name("file"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", name("endless")); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(name("file"), 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	for base, want := range map[string]string{"file": "more than 4 bytes", "pipe": "not a regular file", "endless": "not a regular file", ".": "not a regular file"} {
		if text, err := Read(name(base), 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", base, text, err)
		}
	}
	if _, err := Read(name("none"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
