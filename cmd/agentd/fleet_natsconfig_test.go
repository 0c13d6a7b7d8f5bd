package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/transport/nats"
)

// natsConfigCommand runs the command on a fleet of one agent that takes requests by NATS.
func natsConfigCommand(t *testing.T, transport string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"fleet.yaml":             "version: 1\nname: one\nagents: [{id: echo, path: ./echo}]\n",
		"echo/agent.yaml":        "name: echo\nskills: {say: {process: {command: [cat]}}}\n",
		"echo/capabilities.yaml": "version: 1\nagent: agent://echo\ntransports: [" + transport + "]\ncapabilities: [{name: say}]\n",
		"echo/rpc-peers.yaml":    "version: 1\npeers: []\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, log strings.Builder
	a := &app{stdout: &out, stderr: &log, getenv: os.Getenv, fleetDir: root, output: "table"}
	cmd := a.fleetNATSConfigCommand()
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), log.String(), err
}

const onNATS = "{kind: nats, servers: [nats://127.0.0.1:4222], subjects: {requests: agents.echo.requests}}"

// What the command writes is what the broker command reads, and the key that it
// names opens the door.
func TestNATSConfigCommand(t *testing.T) {
	keys := t.TempDir()
	conf, log, err := natsConfigCommand(t, onNATS, "--keys", keys)
	if err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(keys, "echo.nk")
	if want := "AGENTD_NATS_NKEY=" + seed + " agentd run --agent echo"; !strings.Contains(log, want) {
		t.Errorf("standard error %q, want %q in it", log, want)
	}
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop := startBroker(t, "--config", path, "--port", "0")
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{url}, NKeySeedFile: seed})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestNATSConfigCommandWithoutNATS(t *testing.T) {
	_, _, err := natsConfigCommand(t, "{kind: memory, topics: {requests: t}}", "--keys", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no member of the fleet has a transport of kind nats") {
		t.Errorf("error %v", err)
	}
}
