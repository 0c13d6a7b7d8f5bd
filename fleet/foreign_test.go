package fleet_test

import "testing"

// Foreign is who need not run agentd: agents of others, and members whose files are
// those of the reference runtime.
func TestForeignPeers(t *testing.T) {
	peers := "version: 1\npeers:\n"
	for _, id := range []string{"ours", "theirs", "client", "else.where"} {
		peers += "  - {agent: 'agent://" + id + "', transports: [{kind: memory, topics: {requests: t." + id + "}}]}\n"
	}
	f := files{
		"fleet.yaml":               "version: 1\nname: f\nagents: [{id: ours, path: ours}, {id: theirs, path: theirs}, {id: client, path: client}]\n",
		"ours/agent.yaml":          "name: ours\nskills: {x: {process: {command: [cat]}}}\n",
		"ours/capabilities.yaml":   capabilitiesOf("ours", "x"),
		"theirs/agent.yaml":        "name: theirs\nskills: [skills/x.md]\n",
		"theirs/capabilities.yaml": capabilitiesOf("theirs", "x"),
		"client/agent.yaml":        "name: client\n",
		"rpc-peers.yaml":           peers,
	}.load(t)
	client, _ := f.Member("client")
	for id, want := range map[string]bool{"ours": false, "theirs": true, "client": false, "else.where": true} {
		for _, p := range client.Peers {
			if p.Address.ID() == id && p.Foreign != want {
				t.Errorf("%s is foreign: %v", id, p.Foreign)
			}
		}
	}
	if len(client.Peers) != 4 {
		t.Errorf("%d peers", len(client.Peers))
	}
}
