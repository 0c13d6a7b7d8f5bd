//go:build unix

package review

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestFetchFileNeverWaitsForAPipe(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.patch"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&Source{Root: root}).Fetch(t.Context(), "file:pipe.patch")
	wantRefusal(t, err, "not a regular file", false)
}
