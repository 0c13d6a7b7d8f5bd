package dlq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/broker"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/call"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/output"
)

// failing is a fleet whose clerk fails each request for good at the first attempt.
const failing = `
-- fleet.yaml --
version: 1
name: failing
agents: [{id: clerk, path: ./clerk}, {id: desk, path: ./desk}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://clerk
    transports: [{kind: nats, servers: ["nats://127.0.0.1:4222"], subjects: {requests: agents.clerk.requests}}]
-- desk/agent.yaml --
name: desk
-- clerk/agent.yaml --
name: clerk
durable: {ackWaitMs: 1000, maxDeliver: 1}
skills: {file: {process: {command: [sh, -c, 'exit 75']}}}
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: nats, servers: ["nats://127.0.0.1:4222"], subjects: {requests: agents.clerk.requests}}]
capabilities: [{name: file, delivery: durable}]
`

// withLetters runs the failing fleet on a broker of its own, and makes n calls:
// the dead letters 1 to n.
func withLetters(t *testing.T, n int) *clitest.Env {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{Port: broker.RandomPort, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop(context.Background()) })
	env := clitest.New(t, failing)
	env.Vars["AGENTD_NATS_URL"] = b.URL()
	env.Start(t)
	payload := `{"form":"A1"}`
	for range n {
		err := call.Request(t.Context(), &env.Env, call.Call{Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "file", Payload: &payload})
		if clitest.Code(err) != cli.ExitCall {
			t.Fatalf("%v: %s", err, env.Out)
		}
	}
	eventually.Holds(t, "all are dead letters", func() bool { return len(listed(t, env)) >= n })
	env.Reset()
	env.Format = output.Table
	return env
}

// listed returns the dead letters of all agents.
func listed(t *testing.T, env *clitest.Env) []letter {
	t.Helper()
	env.Reset()
	env.Format = output.JSON
	if err := List(t.Context(), &env.Env, ""); err != nil {
		t.Fatal(err)
	}
	var all []letter
	if err := json.Unmarshal([]byte(env.Out.String()), &all); err != nil || all == nil {
		t.Fatalf("%v in %s", err, env.Out)
	}
	return all
}

func TestListAndShow(t *testing.T) {
	t.Parallel()
	env := withLetters(t, 1)
	if err := List(t.Context(), &env.Env, ""); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(env.Out.String(), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[1], "1       clerk  agent://desk  file ") || !strings.Contains(rows[1], "after 1 attempts") || strings.Contains(rows[1], "A1") {
		t.Errorf("%s", env.Out)
	}
	env.Reset()
	if err := Show(t.Context(), &env.Env, "clerk", "1"); err != nil || !strings.Contains(env.Out.String(), `"form": "A1"`) {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Reset()
	if err := Show(t.Context(), &env.Env, "clerk", "2"); clitest.Code(err) != cli.ExitFailed || env.Out.String() != "" {
		t.Errorf("%v: %s", err, env.Out)
	}
}

// One number that fails does not keep the others from being dropped, and the
// output has those that were.
func TestDrop(t *testing.T) {
	t.Parallel()
	env := withLetters(t, 3)
	err := Drop(t.Context(), &env.Env, "clerk", []string{"1", "99", "3"})
	if want := "1 dropped: file of agent://desk\n3 dropped: file of agent://desk\n"; clitest.Code(err) != cli.ExitFailed ||
		!strings.Contains(err.Error(), "no such dead letter") || env.Out.String() != want {
		t.Errorf("%v, %q; want %q", err, env.Out, want)
	}
	if left := listed(t, env); len(left) != 1 || left[0].Number != 2 {
		t.Errorf("left %+v", left)
	}
}

// A letter that is put back is served again: here it fails again, as a new one.
func TestRedrive(t *testing.T) {
	t.Parallel()
	env := withLetters(t, 1)
	env.Format = output.JSONL
	if err := Redrive(t.Context(), &env.Env, "clerk", []string{"1"}); err != nil || !strings.HasPrefix(env.Out.String(), `{"agent":"clerk","number":1,`) {
		t.Errorf("%v: %s", err, env.Out)
	}
	eventually.Succeeds(t, "it fails again", func() error {
		if left := listed(t, env); len(left) != 1 || left[0].Number == 1 {
			return fmt.Errorf("left %+v", left)
		}
		return nil
	})
}

// Agents without durable capabilities have no dead letters. Named, that is an
// answer that the user should see; among others, it is not.
func TestAgentsWithoutDurableCalls(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	if left := listed(t, env); len(left) != 0 {
		t.Errorf("%+v", left)
	}
	err := List(t.Context(), &env.Env, "clerk")
	if _, ok := errors.AsType[*control.RefusedError](err); !ok {
		t.Errorf("%v", err)
	}
	if err := Show(t.Context(), &env.Env, "clerk", "1"); clitest.Code(err) != cli.ExitFailed {
		t.Errorf("%v", err)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for _, number := range []string{"", "-1", "x", "1.0", "99999999999999999999"} {
		for name, err := range map[string]error{
			"show":    Show(t.Context(), &env.Env, "clerk", number),
			"drop":    Drop(t.Context(), &env.Env, "clerk", []string{"4", number}),
			"redrive": Redrive(t.Context(), &env.Env, "clerk", []string{number}),
		} {
			if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "is no number of a dead letter") {
				t.Errorf("%s %q: %v", name, number, err)
			}
		}
	}
}
