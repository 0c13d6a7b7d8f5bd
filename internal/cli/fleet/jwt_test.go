package fleet

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Accounts for operator mode are pushed to the servers, and then the credentials work:
// those of the operator of JetStream too.
func TestNATSAccounts(t *testing.T) {
	t.Parallel()
	operator := natstest.NewOperator(t)
	server := natstest.Run(t, operator.Conf+"jetstream {}\n")
	env := clitest.New(t, strings.Replace(oneAgent(onNATS), "{name: say}", "{name: say, delivery: durable}", 1))
	env.Vars["AGENTD_NATS_URL"] = server.URL()
	r := JWTRequest{Dir: filepath.Join(t.TempDir(), "accounts"), Keys: t.TempDir(), Push: true, SigningKey: operator.Signing}
	if err := NATSAccounts(t.Context(), &env.Env, r); err == nil {
		t.Error("accounts were pushed without credentials")
	}
	env.Vars["AGENTD_NATS_CREDS"] = operator.Creds
	env.Reset()
	if err := NATSAccounts(t.Context(), &env.Env, r); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(r.Dir, "A*.jwt"))
	if err != nil || len(files) != 3 || strings.Count(env.Out.String(), "\n") != 3 || !strings.Contains(env.Out.String(), "agentd_one+jetstream+echo") {
		t.Errorf("accounts %v, %v\n%s", files, err, env.Out)
	}
	conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{server.URL()}, CredsFile: natsauth.CredsFile(r.Keys, "echo")})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	delete(env.Vars, "AGENTD_NATS_CREDS")
	if err := Provision(t.Context(), &env.Env, ProvisionRequest{Keys: r.Keys}); err != nil {
		t.Error(err)
	}
	r.SigningKey = ""
	if code, _ := cli.ExitCode(NATSAccounts(t.Context(), &env.Env, r)); code != cli.ExitUsage {
		t.Errorf("without a signing key: exit status %d", code)
	}
	if err := NATSConfig(&env.Env, r.Keys); err != nil {
		t.Errorf("the same keys for a file: %v", err)
	}
}
