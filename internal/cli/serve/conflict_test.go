package serve

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/natstest"
)

// An agent that shares its subjects with one of another fleet ends by itself, and names
// both fleets.
func TestAnotherFleetAtTheSameMoment(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	nc, err := natsgo.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	questions := 0
	if _, err := nc.Subscribe("$SRV.STATS.a", func(m *natsgo.Msg) {
		if questions++; questions > 1 { // the first one finds nobody
			_ = m.Respond([]byte(`{"type":"io.nats.micro.v1.stats_response","name":"a","id":"x","metadata":{"fleet":"other"},
				"endpoints":[{"name":"x","subject":"agents.a.requests"}]}`))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	env := clitest.New(t, `
-- fleet.yaml --
version: 1
name: s
agents: [{id: a, path: ./a}]
-- a/agent.yaml --
name: a
skills: {x: {process: {command: [cat]}}}
`)
	env.Write(t, "a/capabilities.yaml", fmt.Sprintf(
		"version: 1\nagent: agent://a\ntransports: [{kind: nats, servers: [%q], subjects: {requests: agents.a.requests}}]\ncapabilities: [{name: x}]\n", server.URL()))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = Agent(ctx, &env.Env, "a", false)
	var conflict *daemon.FleetConflictError
	if !errors.As(err, &conflict) || conflict.Fleet != "s" || conflict.Other != "other" || clitest.Code(err) != cli.ExitFailed {
		t.Errorf("%v, want a conflict", err)
	}
}
