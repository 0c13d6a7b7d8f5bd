package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Agents on one machine have a user each, and share no folder: systemd would give it to the one that
// starts last.
func TestUnitSharesNoFolder(t *testing.T) {
	for line := range strings.Lines(read(t, "systemd/agentd@.service")) {
		line = strings.TrimSpace(line)
		for _, name := range []string{"StateDirectory=", "RuntimeDirectory=", "Environment=XDG_STATE_HOME=", "Environment=XDG_RUNTIME_DIR="} {
			if strings.HasPrefix(line, name) && !strings.HasSuffix(line, "-%i") {
				t.Errorf("agents share what %s names", line)
			}
		}
	}
}

// systemd understands every line of the unit.
func TestUnit(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	// The program that the unit starts is not here.
	unit := strings.ReplaceAll(read(t, "systemd/agentd@.service"), "/usr/local/bin/agentd", "/bin/true")
	unit = strings.Replace(unit, "Type=notify-reload", "Type=notify", 1) // systemd before 253 lacks it
	path := filepath.Join(t.TempDir(), "agentd@indexer.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "verify", "--man=no", path)
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "agentd@indexer.service") {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
	if err != nil && strings.Contains(string(out), "agentd@") {
		t.Error(err)
	}
}
