package fleet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/broker"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/transport/nats"
)

// oneAgent is a fleet of one agent with a transport.
func oneAgent(transport string) string {
	return `
-- fleet.yaml --
version: 1
name: one
agents: [{id: echo, path: ./echo}]
-- echo/agent.yaml --
name: echo
skills: {say: {process: {command: [cat]}}}
-- echo/capabilities.yaml --
version: 1
agent: agent://echo
transports: [` + transport + `]
capabilities: [{name: say}]
-- echo/rpc-peers.yaml --
version: 1
peers: []
`
}

const onNATS = "{kind: nats, servers: [nats://127.0.0.1:4222], subjects: {requests: agents.echo.requests}}"

// A broker accepts the configuration, and the key that the command names.
func TestNATSConfig(t *testing.T) {
	t.Parallel()
	env, keys := clitest.New(t, oneAgent(onNATS)), t.TempDir()
	if err := NATSConfig(&env.Env, keys); err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(keys, "echo.nk")
	if want := "AGENTD_NATS_NKEY=" + seed + " agentd run --agent echo"; !strings.Contains(env.Err.String(), want) {
		t.Errorf("standard error %q, want %q in it", env.Err, want)
	}
	conf := env.Write(t, "nats.conf", env.Out.String())
	b, err := broker.Start(t.Context(), broker.Config{ConfigFile: conf, Port: broker.RandomPort})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop(t.Context())
	conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{b.URL()}, NKeySeedFile: seed})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{b.URL()}}); err == nil {
		_ = conn.Close()
		t.Error("the broker accepts a client without a key")
	}
}

// Keys are made once: the same seeds give the same configuration.
func TestNATSConfigIsStable(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, oneAgent(onNATS))
	var written [2]string
	for i := range written {
		env.Reset()
		if err := NATSConfig(&env.Env, ""); err != nil {
			t.Fatal(err)
		}
		written[i] = env.Out.String()
	}
	if written[0] != written[1] {
		t.Errorf("first %s\nthen %s", written[0], written[1])
	}
	seeds, err := filepath.Glob(filepath.Join(env.Vars["XDG_STATE_HOME"], "agentd", "*", "nats", "echo.nk"))
	if err != nil || len(seeds) != 1 {
		t.Errorf("seeds in the state folder: %v, %v", seeds, err)
	}
}

// JSON has the rules, and makes no keys.
func TestNATSConfigJSON(t *testing.T) {
	t.Parallel()
	env, keys := clitest.New(t, oneAgent(onNATS)), t.TempDir()
	env.Format = output.JSON
	if err := NATSConfig(&env.Env, keys); err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(env.Out.String())) || !strings.Contains(env.Out.String(), "agents.echo.requests") {
		t.Errorf("%s", env.Out)
	}
	if made, err := os.ReadDir(keys); err != nil || len(made) > 0 {
		t.Errorf("made %v, %v", made, err)
	}
}

func TestNATSConfigWithoutNATS(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, oneAgent("{kind: memory, topics: {requests: t}}"))
	err := NATSConfig(&env.Env, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no member of the fleet has a transport of kind nats") {
		t.Errorf("error %v", err)
	}
}
