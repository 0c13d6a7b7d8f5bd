package fleet

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/natstest"
)

// Without rules an operator may provision as well, and a fleet that uses no JetStream
// needs no broker for it.
func TestProvision(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	env := clitest.New(t, strings.Replace(oneAgent(onNATS), "{name: say}", "{name: say, delivery: durable}", 1))
	env.Vars["AGENTD_NATS_URL"] = server.URL()
	if err := Provision(t.Context(), &env.Env, ProvisionRequest{}); err != nil || strings.Count(env.Out.String(), "made") != 4 {
		t.Fatalf("%v\n%s", err, env.Out)
	}
	env.Reset()
	if err := Provision(t.Context(), &env.Env, ProvisionRequest{Check: true}); err != nil || strings.Count(env.Out.String(), " ok") != 4 {
		t.Errorf("%v\n%s", err, env.Out)
	}

	none := clitest.New(t, oneAgent(onNATS))
	if err := Provision(t.Context(), &none.Env, ProvisionRequest{Check: true}); err != nil || !strings.Contains(none.Out.String(), "no agent of the fleet uses JetStream") {
		t.Errorf("%v\n%s", err, none.Out)
	}
}

// A server that wants credentials, and no key of the operator's at hand.
func TestProvisionWithoutTheKey(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}\nauthorization { user: u, password: p }")
	env := clitest.New(t, strings.Replace(oneAgent(onNATS), "{name: say}", "{name: say, delivery: durable}", 1))
	env.Vars["AGENTD_NATS_URL"] = server.URL()
	err := Provision(t.Context(), &env.Env, ProvisionRequest{Keys: t.TempDir()})
	if code, _ := cli.ExitCode(err); err == nil || code != cli.ExitFailed || !strings.Contains(err.Error(), "the operator's key is not in") {
		t.Errorf("%v", err)
	}
}
