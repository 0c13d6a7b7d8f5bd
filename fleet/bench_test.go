package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// largeFleet writes a fleet whose n agents may all call each other.
func largeFleet(tb testing.TB, n int) string {
	tb.Helper()
	root := tb.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	var agents, peers strings.Builder
	for i := range n {
		id := fmt.Sprintf("agent-%d", i)
		fmt.Fprintf(&agents, "  - {id: %s, path: ./%s}\n", id, id)
		fmt.Fprintf(&peers, "  - {agent: agent://%s, transports: [{kind: memory, topics: {requests: agents.%s.requests}}]}\n", id, id)
		write(id+"/agent.yaml", "name: "+id+"\nskills: {answer: {process: {command: [\"true\"]}}}\n")
		write(id+"/capabilities.yaml", `version: 1
agent: agent://`+id+`
transports: [{kind: memory, topics: {requests: agents.`+id+`.requests}}]
capabilities:
  - name: answer
    description: Answers a question.
    skill: answer
    inputSchema: {type: object, additionalProperties: false, required: [question], properties: {question: {type: string, minLength: 1}, limit: {type: integer, minimum: 1}}}
    outputSchema: {type: object, required: [answer], properties: {answer: {type: string}}}
`)
	}
	write("fleet.yaml", "version: 1\nname: large\nagents:\n"+agents.String())
	write("rpc-peers.yaml", "version: 1\npeers:\n"+peers.String())
	return root
}

// Load's cost for each agent does not depend on how many there are.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			root := largeFleet(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fleet.Load(root, fleet.LoadOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/agent")
		})
	}
}

// Members that read one peers file share what it says, and those under other limits theirs:
// copies for each member would grow with the square of the fleet.
func TestMembersSharePeers(t *testing.T) {
	root := largeFleet(t, 6)
	for _, id := range []string{"agent-4", "agent-5"} {
		if err := os.WriteFile(filepath.Join(root, id, "agent.yaml"), []byte("name: "+id+"\nskills: {answer: {process: {command: [\"true\"]}}}\nlimits: {maxViolations: 3}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fleet.Load(root, fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	peer := func(member int) *fleet.Peer {
		p, ok := f.Members[member].Peer("agent://agent-1")
		if !ok || p != f.Members[member].Peers[1] {
			t.Fatalf("%s has not the peer that it lists", f.Members[member].ID)
		}
		return p
	}
	if peer(0) != peer(3) || peer(4) != peer(5) || peer(0) == peer(4) || peer(0).Document == peer(4).Document {
		t.Error("peers are not shared by exactly the members that see them alike")
	}
}
