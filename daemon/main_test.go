package daemon_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/agentd/agentd/skill/sandbox"
	"github.com/agentd/agentd/skill/sdk"
)

// The test binary is also what confines the programs of skills, as agentd is.
func TestMain(m *testing.M) {
	if sandbox.IsHelper(os.Args) {
		os.Exit(sandbox.Main(os.Args))
	}
	switch os.Getenv("DAEMON_TEST") {
	case "worker":
		sdk.Main(func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }, sdk.Concurrent(64))
	case "faulty":
		goFaulty()
	case "pipe":
		pipeEcho()
	}
	os.Exit(m.Run())
}
