package daemon_test

import (
	"os"
	"testing"

	"github.com/agentd/agentd/skill/sandbox"
)

// The test binary is also what confines the programs of skills, as agentd is.
func TestMain(m *testing.M) {
	if sandbox.IsHelper(os.Args) {
		os.Exit(sandbox.Main(os.Args))
	}
	os.Exit(m.Run())
}
