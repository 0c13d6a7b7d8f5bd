package sdk_test

import (
	"os/exec"
	"testing"

	"github.com/agentd/agentd/internal/npmtest"
)

// The strictest settings of both type checkers find nothing in the kit or in its tests.
func TestPythonTypes(t *testing.T) {
	mypy, err := exec.LookPath("mypy")
	for name, cmd := range map[string]func(t *testing.T) *exec.Cmd{
		"mypy": func(t *testing.T) *exec.Cmd {
			if err != nil {
				t.Skip(err)
			}
			return exec.Command(mypy, "--cache-dir", t.TempDir(), "src", "tests")
		},
		"pyright": func(t *testing.T) *exec.Cmd { return npmtest.Program(t, "pyright/index.js", "--project", ".") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := cmd(t)
			cmd.Dir = "python"
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
