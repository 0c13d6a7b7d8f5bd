package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// A full disk is one failure, and its remedy is room, not a right to write.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no file system can be mounted here, which takes CAP_SYS_ADMIN: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	file, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 512))
	}
	_ = file.Close() // it is full
	p := &patient{examination: &examination{report: &report{}}, member: &fleet.Member{ID: "desk", AuditDB: filepath.Join(dir, "audit.db")}}
	p.disk(t.Context())
	if len(p.lines) != 1 || p.lines[0].Status != fail || !strings.Contains(p.lines[0].Remedy, "make room") {
		t.Errorf("reported %+v", p.lines)
	}
}
