package daemon_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/rpc"
)

// A Go function is inline where agent.yaml says so, and an agent without that function does
// not start.
func TestInlineSkill(t *testing.T) {
	t.Parallel()
	all := files()
	all["callee/agent.yaml"] = strings.Replace(all["callee/agent.yaml"], "skills: {", "skills: {go: {inline: true}, ", 1)
	inline := make(chan bool, 1)
	cfg := load(t, all)
	if _, err := daemon.StartFleet(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `the skill "go" is inline, and this program has no Go function`) {
		t.Fatalf("without the function: %v", err)
	}
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		inline <- inv.Inline
		return inv.Payload, nil
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	if _, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	if !<-inline {
		t.Error("the skill is not inline")
	}
}
