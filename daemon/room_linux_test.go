package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A disk with a little room is full all the same; one that cannot be written for
// another reason is not.
func TestCheckRoom(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no file system can be mounted here, which takes CAP_SYS_ADMIN: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, "audit.db")
	if err := errors.Join(checkRoom(path), os.WriteFile(filepath.Join(dir, "other"), make([]byte, 400<<10), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := checkRoom(path); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("with 112 KiB left: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := checkRoom(filepath.Join(dir, "gone", "audit.db")); err != nil {
		t.Errorf("a folder that is gone: %v", err)
	}
}
