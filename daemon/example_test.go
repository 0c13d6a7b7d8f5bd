package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
)

// A fleet runs inside a Go program, one of its skills a function of that program.
func Example() {
	dir, err := os.MkdirTemp("", "agentd")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"fleet.yaml":     "version: 1\nname: f\nagents: [{id: greeter, path: .}]\nenvironments: {default: {peersRef: ./rpc-peers.yaml}}\n",
		"rpc-peers.yaml": "version: 1\npeers: [{agent: agent://greeter, transports: [{kind: memory, topics: {requests: greeter}}]}]\n",
		"agent.yaml":     "name: greeter\n",
		"capabilities.yaml": "version: 1\nagent: agent://greeter\ntransports: [{kind: memory, topics: {requests: greeter}}]\n" +
			"capabilities: [{name: greet, inputSchema: {type: object, properties: {name: {type: string}}, required: [name]}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	f, err := fleet.Load(dir, fleet.LoadOptions{})
	if err != nil {
		panic(err)
	}
	running, err := daemon.StartFleet(context.Background(), daemon.Config{
		Fleet:  f,
		Paths:  daemon.Paths{State: filepath.Join(dir, "state"), Runtime: filepath.Join(dir, "run")},
		Logger: slog.New(slog.DiscardHandler),
		Handlers: map[string]rpc.Handler{"greet": skill.Func(func(_ context.Context, in struct{ Name string }) (string, error) {
			return "Hello " + in.Name, nil
		})},
	})
	if err != nil {
		panic(err)
	}
	defer running.Stop(context.Background())

	greeter, _ := running.Daemon("greeter")
	result, err := greeter.Client().RequestAgent(context.Background(), rpc.Request{
		To: "agent://greeter", Capability: "greet", Payload: json.RawMessage(`{"name":"Ada"}`),
	})
	fmt.Println(result.Status, string(result.Response), err)
	// Output: ok "Hello Ada" <nil>
}
