package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Format = output.JSONL
	if err := Validate(&env.Env, true); err != nil || !strings.Contains(env.Out.String(), `"ok":true,"findings":[{"severity":"note","code":"peer.dangling"`) {
		t.Errorf("a peer without a file: %v: %s", err, env.Out)
	}
	env.Write(t, "rpc-peers.yaml", "version: 1\npeers:\n  - agent: agent://clerc\n    transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]\n")
	env.Reset()
	if err := Validate(&env.Env, false); err != nil || !strings.Contains(env.Out.String(), `"ok":true,"findings":[{"severity":"warning"`) {
		t.Errorf("a warning: %v: %s", err, env.Out)
	}
	env.Reset()
	if err := Validate(&env.Env, true); clitest.Code(err) != cli.ExitFinding || !strings.Contains(err.Error(), "--strict") || !strings.Contains(env.Out.String(), `"ok":false,"findings":[{"severity":"warning"`) {
		t.Errorf("a warning, strictly: %v: %s", err, env.Out)
	}
	env.Write(t, "clerk/agent.yaml", "name: clerk\nskils: {}\n")
	env.Write(t, "desk/agent.yaml", "name: desk\npermission: {}\n")
	env.Reset()
	err := Validate(&env.Env, false)
	if clitest.Code(err) != cli.ExitFinding || !strings.Contains(env.Out.String(), `"ok":false`) {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Reset()
	env.Format = output.Table
	if err := Validate(&env.Env, false); clitest.Code(err) != cli.ExitFinding {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"clerk/agent.yaml:2:", "desk/agent.yaml:2:", "skills", "permissions"} { // every fault, with the nearest key
		if !strings.Contains(env.Out.String(), want) {
			t.Errorf("no %s in %s", want, env.Out)
		}
	}
	if err := Validate(&clitest.New(t, "").Env, false); clitest.Code(err) != cli.ExitFailed {
		t.Errorf("no fleet: %v", err)
	}
}

func TestListAndCapabilities(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for name, test := range map[string]struct {
		run   func(*cli.Env) error
		wants []string
	}{
		"list":         {List, []string{"clerk", "desk"}},
		"capabilities": {Capabilities, []string{"clerk", "echo", "file", "sign"}},
	} {
		for _, format := range []output.Format{output.Table, output.JSON} {
			env.Reset()
			env.Format = format
			if err := test.run(&env.Env); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.wants {
				if !strings.Contains(env.Out.String(), want) {
					t.Errorf("%s %s: no %s in %s", name, format, want, env.Out)
				}
			}
			if format == output.JSON && !json.Valid([]byte(env.Out.String())) {
				t.Errorf("%s: %s", name, env.Out)
			}
		}
	}
}

func TestGraph(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for format, want := range map[fleet.GraphFormat]string{fleet.FormatMermaid: "graph", fleet.FormatDOT: "digraph", fleet.FormatJSON: "{"} {
		env.Reset()
		if err := Graph(&env.Env, format); err != nil || !strings.Contains(env.Out.String(), want) || !strings.Contains(env.Out.String(), "desk") {
			t.Errorf("%s: %v, %s", format, err, env.Out)
		}
	}
	if err := Graph(&env.Env, "png"); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--format: must be mermaid, dot or json") {
		t.Errorf("%v", err)
	}
	env.Reset()
	env.Format = output.JSON
	if err := Graph(&env.Env, "png"); err != nil || !json.Valid([]byte(env.Out.String())) {
		t.Errorf("-o json takes no notice of --format: %v, %s", err, env.Out)
	}
}

// Files alone tell who the peers are, and which of them are no members.
func TestPeersOfFiles(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Format = output.JSONL
	for _, test := range []struct {
		request PeersRequest
		want    []string
	}{
		{PeersRequest{}, []string{
			"clerk agent://elsewhere external", "desk agent://clerk not-yet-probed", "desk agent://elsewhere external",
		}},
		{PeersRequest{As: "desk"}, []string{"desk agent://clerk not-yet-probed", "desk agent://elsewhere external"}},
		{PeersRequest{Only: []string{"agent://clerk"}}, []string{"desk agent://clerk not-yet-probed"}},
		{PeersRequest{Only: []string{"agent://nobody"}}, nil},
	} {
		env.Reset()
		if err := Peers(t.Context(), &env.Env, test.request); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(env.Out.String()) {
			var p peer
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Agent+" "+string(p.Peer)+" "+string(p.State))
			if (p.Digest != "") != (p.Peer == "agent://clerk") {
				t.Errorf("digest %q of %s", p.Digest, p.Peer)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.request, got, test.want)
		}
	}
	for want, r := range map[string]PeersRequest{"has no agent": {As: "nobody"}, "a..b": {Only: []string{"a..b"}}} {
		if err := Peers(t.Context(), &env.Env, r); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A peer that serves what its file says is reachable; one that nobody serves is
// not, which is a finding.
func TestVerifyPeers(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Peers(t.Context(), &env.Env, PeersRequest{Verify: true}); clitest.Code(err) != cli.ExitFailed {
		t.Errorf("nobody runs: %v", err)
	}
	env.Start(t)
	if err := Peers(t.Context(), &env.Env, PeersRequest{Verify: true, As: "desk", Only: []string{"agent://clerk"}}); err != nil {
		t.Errorf("%v: %s", err, env.Out)
	}
	if got := strings.Join(strings.Fields(env.Out.String()), " "); !strings.Contains(got, "desk agent://clerk memory agents.clerk.requests reachable") {
		t.Errorf("%s", env.Out)
	}
	env.Reset()
	if err := Peers(t.Context(), &env.Env, PeersRequest{Verify: true, As: "desk"}); clitest.Code(err) != cli.ExitFinding || !strings.Contains(env.Out.String(), "unreachable") {
		t.Errorf("%v: %s", err, env.Out)
	}
}

func TestPeerTable(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	err := writePeers(&env.Env, []peer{
		{"a", control.PeerStatus{Peer: "agent://b", State: control.PeerReachable, LatencyMs: 1.26, Instances: 2, Version: "v1", Digest: "sha256:0123456789abcdef"}},
		{"a", control.PeerStatus{Peer: "agent://c", State: control.PeerDrifted, Differ: []string{"x", "y"}, Digest: "odd\x07"}},
		{"a", control.PeerStatus{Peer: "agent://d", State: control.PeerUnreachable, Error: "no answer", External: true}},
		{"a", control.PeerStatus{Peer: "agent://e", State: control.PeerExternal, External: true}},
		{"a", control.PeerStatus{Peer: "agent://f", State: control.PeerDrifted, Differ: []string{"x", "y"}, Drifts: []control.PeerDrift{{Capability: "x", Reason: "no"}, {Capability: "y"}}}},
		{"a", control.PeerStatus{Peer: "agent://g", State: control.PeerReachable, NoContract: true, External: true}},
		{"a", control.PeerStatus{Peer: "agent://h", State: control.PeerReachable, Contracts: map[string]int{"s": 1, "t": 2}}},
		{"a", control.PeerStatus{Peer: "agent://i", State: control.PeerReachable, Unusable: []string{"x", "y"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(env.Out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"AGENT PEER TRANSPORT SUBJECT STATUS LATENCY INSTANCES VERSION DIGEST NOTE",
		"a agent://b reachable 1.3 ms 2 v1 sha256:0123456789ab",
		`a agent://c drifted - - - odd\x07 another contract of x, y`,
		"a agent://d unreachable - - - - no answer",
		"a agent://e external - - - - no member of the fleet",
		"a agent://f drifted - - - - another contract of x, y: no",
		"a agent://g reachable (publishes no contract) - - - - no member of the fleet",
		"a agent://h reachable - - - - its replicas offer 2 different contracts",
		"a agent://i reachable - - - - offers x, y, which this agent's copy of its file lacks",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Status(t.Context(), &env.Env); clitest.Code(err) != cli.ExitFinding || strings.Count(env.Out.String(), "down") != 2 {
		t.Errorf("nobody runs: %v, %s", err, env.Out)
	}
	env.Confines = true
	env.Start(t)
	env.Reset()
	env.Format = output.JSON
	if err := Status(t.Context(), &env.Env); err != nil {
		t.Errorf("%v: %s%s", err, env.Out, env.Err)
	}
	var all []instance
	if err := json.Unmarshal([]byte(env.Out.String()), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Agent != "clerk" || all[0].State != stateReady || all[0].Where != "local" || all[0].Version != "v1.2.3" ||
		all[0].Digest == "" || all[1].Digest != "" || all[0].Started.IsZero() {
		t.Errorf("%+v", all)
	}

	// A file that the running agent has not loaded yet is noted.
	breaking := strings.Replace(clitest.Office[strings.Index(clitest.Office, "version: 1\nagent: agent://clerk"):], "required: [form]", "required: []", 1)
	env.Write(t, "clerk/capabilities.yaml", breaking)
	env.Reset()
	env.Format = output.Table
	if err := Status(t.Context(), &env.Env); err != nil || !strings.Contains(env.Out.String(), "it has not reloaded the file") {
		t.Errorf("%v: %s", err, env.Out)
	}
}

// The rows follow the members of the fleet, and every member has one.
func TestByMember(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	got := byMember(f, []instance{
		{Agent: "desk", Instance: "1"}, {Agent: "stranger"}, {Agent: "clerk", Instance: "2"}, {Agent: "clerk", Instance: "3"},
	})
	var names []string
	for _, i := range got {
		names = append(names, i.Agent+i.Instance+i.State)
	}
	if want := []string{"clerk2", "clerk3", "desk1"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if got := byMember(f, nil); len(got) != 2 || got[0].State != stateDown || got[1].State != stateDown || got[0].Notes != nil {
		t.Errorf("%+v", got)
	}
}

// Programs read a code beside each text: those of the agent's own conditions, and those of what
// only this command finds.
func TestStatusConditions(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	full := health.Condition{Kind: health.AuditLog, Code: "disk-full", Effect: "calls are refused", Cause: "no space", Since: time.Now()}
	all := byMember(f, []instance{newInstance(whereLocal, control.Status{
		Agent: "agent://clerk", Digest: "another", Reason: full.String(), Conditions: []health.Condition{full},
		Tools:   []control.Tools{{Key: "mail", Skipped: "no server"}, {Key: "memory"}},
		Workers: []control.Worker{{Skill: "file", Restarts: 2}},
	})})
	var got []string
	for _, i := range all {
		for _, c := range i.Conditions {
			got = append(got, fmt.Sprintf("%s %s/%s/%s %v", i.Agent, c.Kind, c.Subject, c.Code, c.Advisory))
		}
		if len(i.Notes) != len(i.Conditions) && i.State != stateDown {
			t.Errorf("%d notes and %d conditions", len(i.Notes), len(i.Conditions))
		}
	}
	want := []string{
		"clerk audit-log//disk-full false", "clerk tools/mail/skipped true", "clerk worker/file/replaced true",
		"clerk contract//not-reloaded true", "desk agent//down false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// The table names MCP clients where nothing is wrong.
func TestClients(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	env := &cli.Env{Stdout: &out, Format: output.Table}
	clients := []control.MCPClient{{Client: "claude-code", Streams: 1}, {Client: "cursor", Pending: 2}}
	if err := writeInstances(env, []instance{{Agent: "a", MCP: clients}, {Agent: "b", MCP: clients, Notes: []string{"old key"}}}); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(rows) != 3 || !strings.HasSuffix(rows[1], "serves the MCP clients claude-code, cursor") || !strings.HasSuffix(rows[2], "old key") {
		t.Errorf("%s", out.String())
	}
}

// The reason for not being ready comes before any warning.
func TestNewInstance(t *testing.T) {
	t.Parallel()
	started := time.Unix(1, 0)
	got := newInstance("nats", control.Status{Agent: "agent://a", Ready: false, Reason: "no broker", Warnings: []string{"old key"}, Started: started})
	if got.Agent != "a" || got.State != stateNotReady || !slices.Equal(got.Notes, []string{"no broker", "old key"}) || got.Started != started {
		t.Errorf("%+v", got)
	}
	if got := newInstance("nats", control.Status{Agent: "agent://a", Ready: true, Reason: "ignored"}); got.State != stateReady || got.Notes != nil {
		t.Errorf("%+v", got)
	}
}
