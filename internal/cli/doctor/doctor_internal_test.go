package doctor

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/internal/tlstest"
	"github.com/agentd/agentd/policy"
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

// What the running agent says of itself is judged: what stops calls is a failure, what may is a
// warning, and each has a remedy.
func TestRunningAgent(t *testing.T) {
	since := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	breaker := control.Breaker{Peer: "agent://clerk", Capability: "file", Cause: "EAGENTRPC_TIMEOUT", Calls: 20, Failed: 19, Until: since}
	of := func(state policy.BreakerState) control.Breaker {
		b := breaker
		b.State = state
		return b
	}
	for name, test := range map[string]struct {
		status control.Status
		want   []string // a line each: its check, status and text
	}{
		"nothing": {},
		"circuits": {control.Status{Breakers: []control.Breaker{of(policy.BreakerOpen), of(policy.BreakerHalfOpen), of(policy.BreakerClosed)}}, []string{
			"circuits fail calls to file of agent://clerk are refused until 2026-05-04T10:00:00Z: 19 of 20 failed, the last one with EAGENTRPC_TIMEOUT",
			"circuits warn most calls to file of agent://clerk have failed, the last one with EAGENTRPC_TIMEOUT: the next ones find out whether it works again",
		}},
		"closed circuits": {control.Status{Breakers: []control.Breaker{of(policy.BreakerClosed), of(policy.BreakerClosed)}}, []string{"circuits ok closed: 2 capabilities called"}},
		"slow": {control.Status{Requests: 9, Slow: []control.SlowRequests{{Capability: "sort", Seconds: 1, Share5m: .5, Share1h: .25}}}, []string{
			"latency warn 50% of the requests for sort in the last 5 minutes took longer than 1s, and 25% of those in the last hour",
		}},
		"fast": {control.Status{Requests: 9}, []string{"latency ok no capability has had too many slow requests in the last 5 minutes and the last hour"}},
		"a witness that lags": {control.Status{Audit: &control.AuditStatus{Witnesses: []control.WitnessStatus{
			{Witness: "agent://clerk", UnsignedSince: since, Error: "timeout"}, {Witness: "agent://notary"},
		}}}, []string{"witnesses warn agent://clerk has not co-signed the audit log since 2026-05-04T10:00:00Z: timeout"}},
		"a lost broker": {control.Status{Brokers: []control.Broker{{Broker: "nats"}, {Broker: "jetstream", Connected: true}}}, []string{
			"agent fail has no connection to its broker (nats): it neither gets nor makes calls over NATS",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &patient{examination: &examination{report: &report{}}, member: &fleet.Member{ID: "desk", Agent: &fleet.AgentFile{}}, status: &test.status}
			p.brokersAway(p.status)
			p.calls(t.Context())
			p.lagging()
			var got []string
			for _, l := range p.lines {
				got = append(got, fmt.Sprintf("%s %s %s", l.Check, l.Status, l.Text))
				if (l.Remedy == "") != (l.Status == ok) {
					t.Errorf("%s: the remedy %q", l.Text, l.Remedy)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("said\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
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

// A broker that is there, and whose certificate is not accepted, is told apart from one that cannot
// be reached.
func TestBrokerWithAnotherCertificate(t *testing.T) {
	cert, key := tlstest.NewAuthority(t).Issue("server", time.Hour)
	server := natstest.Run(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q }", cert, key))
	variables := map[string]string{"AGENTD_NATS_URL": "tls://" + server.Addr(), "AGENTD_NATS_CA": tlstest.NewAuthority(t).File}
	p := &patient{examination: &examination{report: &report{}, env: &cli.Env{Getenv: func(name string) string { return variables[name] }}}, member: &fleet.Member{
		ID: "a", Agent: &fleet.AgentFile{}, Peers: []*fleet.Peer{{Transports: []capability.TransportSpec{{Kind: capability.NATS}}}},
	}}
	p.broker(t.Context())
	if len(p.lines) != 1 || p.lines[0].Status != fail || !strings.Contains(p.lines[0].Text, "no TLS connection") || !strings.Contains(p.lines[0].Remedy, "AGENTD_NATS_CA") {
		t.Errorf("reported %+v", p.lines)
	}
}
