package doctor

import (
	"net"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
)

// What the running agent has found out about a peer has a remedy, or is no fault.
func TestFaultsOfPeers(t *testing.T) {
	for _, test := range []struct {
		name, text, remedy string
		status             control.PeerStatus
	}{
		{"sound", "", "", control.PeerStatus{State: control.PeerReachable}},
		{"silent", "does not answer at a.requests: no responders", "start it", control.PeerStatus{State: control.PeerUnreachable, Subject: "a.requests", Error: "no responders"}},
		{
			"drifted", "serves another contract of answer: a number is refused", "bring this fleet's copy",
			control.PeerStatus{State: control.PeerDrifted, Differ: []string{"answer"}, Drifts: []control.PeerDrift{{Reason: "a number is refused"}}},
		},
		{"mixed", "has replicas with 2 different contracts", "roll-out", control.PeerStatus{State: control.PeerReachable, Contracts: map[string]int{"a": 1, "b": 2}}},
	} {
		text, remedy := faultOf(&test.status)
		if text != test.text || !strings.Contains(remedy, test.remedy) {
			t.Errorf("%s: %q, %q", test.name, text, remedy)
		}
	}
}

// A port that somebody else has is found before the agent is started.
func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := &patient{examination: &examination{report: &report{}}, member: &fleet.Member{ID: "a", Agent: &fleet.AgentFile{}}}
	p.member.Agent.MCP.Listen = l.Addr().String()
	p.ports(t.Context())
	if len(p.lines) != 1 || p.lines[0].Status != fail || !strings.Contains(p.lines[0].Text, "mcp.listen") || p.lines[0].Remedy == "" {
		t.Errorf("reported %+v", p.lines)
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		rule, subject string
		want          bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.b.c", false},
		{"a.b.c", "a.b", false},
		{"a.*", "a.b", true},
		{"a.*", "a.b.c", false},
		{"a.>", "a.b.c", true},
		{"a.>", "a", false},
		{">", "a", true},
		{"*.b", "a.c", false},
	} {
		if got := covers(test.rule, test.subject); got != test.want {
			t.Errorf("covers(%q, %q) = %v", test.rule, test.subject, got)
		}
	}
}
