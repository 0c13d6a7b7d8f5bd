package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(name)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(name)
	var held *HeldError
	if !errors.As(err, &held) || !strings.Contains(held.Holder, fmt.Sprintf("process %d, since 2", os.Getpid())) {
		t.Errorf("the second got %v", err)
	}
	first.Release()
	second, err := Acquire(name)
	if err != nil {
		t.Fatal("after the release:", err)
	}
	second.Release()
	if _, err := Acquire(filepath.Join(name, "x")); err == nil || errors.As(err, &held) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
}

// A link that somebody has put in the place of the lock empties no file.
func TestLockFollowsNoLink(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	name, other := filepath.Join(folder, "lock"), filepath.Join(folder, "other")
	if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, name); err != nil {
		t.Skip(err)
	}
	if l, err := Acquire(name); err == nil {
		l.Release()
		t.Error("the lock is taken on what the link leads to")
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
}
