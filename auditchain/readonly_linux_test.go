package auditchain_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// mountReadOnly returns a function that makes a folder read-only. Permissions do not
// keep root out, so root gets a small file system of its own there.
func mountReadOnly(t *testing.T, dir string) (lock func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
		return func() {
			if err := os.Chmod(dir, 0o500); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("root may not mount a file system here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return func() {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=16m"); err != nil {
			t.Fatal(err)
		}
	}
}

func isReadOnlyFileSystem(err error) bool { return errors.Is(err, syscall.EROFS) }
