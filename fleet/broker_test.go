package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// Where the names on the broker carry the fleet's, subjects must too, and the names of
// members do; those of other agents do not.
func TestBrokerNames(t *testing.T) {
	write := func(t *testing.T, name, broker, subject string) string {
		t.Helper()
		root := t.TempDir()
		on := "[{kind: nats, servers: [nats://127.0.0.1], subjects: {requests: " + subject + "}}, {kind: memory, topics: {requests: agents.a.requests}}]"
		for path, text := range map[string]string{
			"fleet.yaml":          "version: 1\nname: " + name + "\n" + broker + "agents: [{id: a, path: ./a}]\n",
			"a/agent.yaml":        "name: a\nskills: {s: {process: {command: [cat]}}}\n",
			"a/capabilities.yaml": "version: 1\nagent: agent://a\ntransports: " + on + "\ncapabilities: [{name: s}]\n",
			"a/rpc-peers.yaml":    "version: 1\npeers:\n  - {agent: agent://other, transports: [{kind: nats, servers: [nats://127.0.0.1], subjects: {requests: agents.other.requests}}]}\n",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	const byFleet = "broker: {names: fleet}\n"
	for _, test := range []struct{ name, broker, subject, want, fault string }{
		{"acme", "", "agents.a.requests", "a", ""},
		{"acme", "broker: {names: agent}\n", "agents.a.requests", "a", ""},
		{"acme", byFleet, "acme.a.requests", "acme.a", ""},
		{"acme", byFleet, "agents.a.requests", "", "a/capabilities.yaml:3:14: /transports/0: the subject \"agents.a.requests\" does not begin with the fleet's name, as `broker: {names: fleet}` of fleet.yaml demands (write acme.a.requests)"},
		{"a.b", byFleet, "a.b.a.requests", "", "cannot be part of the names on a broker (use letters, digits, - and _)"},
		{"acme", "broker: {names: x}\n", "acme.a.requests", "", "/broker/names: expected one of agent, fleet"},
	} {
		f, err := fleet.Load(write(t, test.name, test.broker, test.subject), fleet.LoadOptions{})
		switch {
		case test.fault != "":
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%+v: %v", test, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", test, err)
		case f.BrokerName("agent://a") != test.want || f.BrokerName("agent://other") != "other":
			t.Errorf("%+v: %s and %s", test, f.BrokerName("agent://a"), f.BrokerName("agent://other"))
		}
	}
}
