package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
)

// A start on a full disk says that the disk is full, whichever file of the audit log was the one
// that did not fit, leaves nothing that keeps the next start from succeeding, and does not change
// what the log had.
func TestStartOnAFullDisk(t *testing.T) {
	for name, served := range map[string]bool{"of a new agent": false, "of one with records": true} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, files())
			cfg.Handlers = handle(echo)
			cfg.Paths.State = filepath.Join(t.TempDir(), "s")
			if err := os.MkdirAll(filepath.Join(cfg.Paths.State, "callee"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("tmpfs", cfg.Paths.State, "tmpfs", 0, "size=2m"); err != nil {
				t.Skipf("no file system can be mounted here, which takes CAP_SYS_ADMIN: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(cfg.Paths.State, syscall.MNT_DETACH) })
			before := 0
			if served {
				stop(t, startFleet(t, cfg))
				before = len(records(t, cfg, "callee"))
			}
			fill := filepath.Join(cfg.Paths.State, "fill")
			file, err := os.Create(fill)
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = file.Write(make([]byte, 512))
			}
			_ = file.Close() // it is full

			f, err := daemon.StartFleet(t.Context(), cfg)
			if err == nil {
				stop(t, f)
				t.Fatal("agents start on a full disk")
			}
			// Of a folder that cannot be made the system says all that is to be said.
			if auditchain.CodeOf(err) != auditchain.CodeFull && !strings.Contains(err.Error(), "no space left on device") {
				t.Errorf("the start fails with %v", err)
			}
			if err := os.Remove(fill); err != nil {
				t.Fatal(err)
			}
			stop(t, startFleet(t, cfg))
			if all := records(t, cfg, "callee"); len(all) < before+2 {
				t.Errorf("%d records, of which %d are from before", len(all), before)
			}
		})
	}
}
