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
