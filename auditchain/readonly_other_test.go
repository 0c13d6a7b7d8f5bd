//go:build !linux

package auditchain_test

import (
	"os"
	"testing"
)

func mountReadOnly(t *testing.T, dir string) (lock func()) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("permissions do not keep root out")
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	return func() {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
}

func isReadOnlyFileSystem(error) bool { return false }
