package npmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Env names the variable with the path of a node_modules folder, which .ci/run fills.
const Env = "AGENTD_NODE_MODULES"

// Program returns a command that runs a script of node_modules by the Node.js that stands there:
// that of the machine is often older than the script needs. It works in a folder of its own. The
// test is skipped where npm has not installed the two.
func Program(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	modules := os.Getenv(Env)
	if modules == "" {
		t.Skip(Env + " does not say where the packages of npm are: .ci/run sets it")
	}
	node, program := filepath.Join(modules, "node", "bin", "node"), filepath.Join(modules, script)
	for _, file := range []string{node, program} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("npm has not installed it: ", err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{program}, args...)...) //nolint:gosec // tests choose what they run
	cmd.Dir = t.TempDir()                                                                // some write reports, and some settings
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	return cmd
}
