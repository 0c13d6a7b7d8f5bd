package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

func TestClientRules(t *testing.T) {
	const claude, cursor = "MCP:claude-code", "MCP:cursor"
	for _, test := range []struct {
		name, yaml, origin string
		allowed            bool
		reason             policy.Reason
		rule               string
	}{
		{"no rules: what the agent has", "", claude, true, policy.PeerListed, "agent://librarian"},
		{"no rules about clients: what the agent has", "permissions: {allow: ['RequestAgent:**']}\n", claude, true, policy.AllowRule, "RequestAgent:**"},
		{"what the agent has not", "permissions: {deny: ['RequestAgent:**'], allow: ['MCP:**']}\n", claude, false, policy.DenyRule, "RequestAgent:**"},
		{"allowed", "permissions: {allow: ['MCP:claude-code/agent://librarian/*']}\n", claude, true, policy.AllowRule, "MCP:claude-code/agent://librarian/*"},
		{"another client", "permissions: {allow: ['MCP:claude-code/agent://librarian/*']}\n", cursor, false, policy.NoClientRule, ""},
		{"a client whose name begins alike", "permissions: {allow: ['MCP:claude/agent://librarian/*']}\n", claude, false, policy.NoClientRule, ""},
		{"all clients", "permissions: {allow: ['MCP:*/agent://librarian/search']}\n", cursor, true, policy.AllowRule, "MCP:*/agent://librarian/search"},
		{"deny wins", "permissions: {allow: ['MCP:**'], deny: ['MCP:cursor/**']}\n", cursor, false, policy.DenyRule, "MCP:cursor/**"},
		{"a rule that denies one denies all that none allows", "permissions: {deny: ['MCP:cursor/**']}\n", claude, false, policy.NoClientRule, ""},
		{"a rule for the agent allows no client", "permissions: {allow: ['**', 'MCP:cursor/**']}\n", claude, false, policy.NoClientRule, ""},
		{"a person decides", "permissions: {allow: ['MCP:**'], ask: ['MCP:**/search']}\n", claude, false, policy.AskRule, "MCP:**/search"},
		{"a person decides, and is asked once", "permissions: {ask: ['RequestAgent:**', 'MCP:**']}\n", claude, false, policy.AskRule, "RequestAgent:**"},
		{"nobody is asked about what a client may not", "permissions: {ask: ['RequestAgent:**'], allow: ['MCP:cursor/**']}\n", claude, false, policy.NoClientRule, ""},
		{"asked for the agent, allowed to the client", "permissions: {ask: ['RequestAgent:**'], allow: ['MCP:**']}\n", claude, false, policy.AskRule, "RequestAgent:**"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := callerRules(t, test.yaml)
			d := rules.DecideFor(test.origin, librarian, "search")
			if d.Allowed != test.allowed || d.Reason != test.reason || d.Rule.Pattern != test.rule {
				t.Errorf("%v: %s", d.Allowed, d)
			}
		})
	}
}

// Whatever the rules, a client has nothing that the agent has not, a person decides about
// all that one decides about for the agent, and rules about clients change nothing of
// what the agent may, or of what its broker lets through.
func TestClientsHaveNoMoreThanTheAgent(t *testing.T) {
	f := loadFleet(t, "permissions: {}\n", "", "")
	m, _ := f.Member("pr-reviewer")
	pattern := func(prefixes ...string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom(prefixes).Draw(t, "tool") + rapid.SampledFrom([]string{
				"**", "agent://librarian/*", "agent://librarian/search", "agent://*/*", "agent://stranger/**",
			}).Draw(t, "target")
		})
	}
	own, about := rapid.SliceOfN(pattern("RequestAgent:", "Bash:"), 0, 3), rapid.SliceOfN(pattern("MCP:a/", "MCP:*/", "MCP:b/"), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		var without, with *fleet.Permissions
		if clients := (fleet.ClientPermissions{
			Allow: ruleList(about.Draw(t, "clients")), Ask: ruleList(about.Draw(t, "ask of clients")), Deny: ruleList(about.Draw(t, "not clients")),
		}); clients.Any() {
			with = &fleet.Permissions{Clients: clients}
		}
		if rapid.Bool().Draw(t, "the agent has rules of its own") {
			without = &fleet.Permissions{Allow: append([]fleet.PermissionRule{}, ruleList(own.Draw(t, "allow"))...), Ask: ruleList(own.Draw(t, "ask")), Deny: ruleList(own.Draw(t, "deny"))}
			both := *without
			if with != nil {
				both.Clients = with.Clients
			}
			with = &both
		}
		agent, member := *m.Agent, *m
		member.Agent = &agent
		decide := func(p *fleet.Permissions) (*policy.CallerRules, bool) {
			agent.Permissions = p
			rules, err := policy.NewCallerRules(&member)
			if err != nil {
				t.Fatal(err)
			}
			reach, err := policy.Reach(&fleet.Fleet{Members: []*fleet.Member{&member}})
			if err != nil {
				t.Fatal(err)
			}
			return rules, reach(reviewer, librarian)
		}
		rules, reached := decide(with)
		before, reachedBefore := decide(without)
		if reached != reachedBefore {
			t.Fatalf("the broker lets through %v, and without rules about clients %v", reached, reachedBefore)
		}
		to := rapid.SampledFrom([]envelope.Address{librarian, stranger}).Draw(t, "to")
		name := rapid.SampledFrom([]string{"search", "read", "x"}).Draw(t, "capability")
		is, was := rules.Decide(to, name), before.Decide(to, name)
		if is != was {
			t.Fatalf("the agent's own call: %s, and without rules about clients %s", is, was)
		}
		d := rules.DecideFor("MCP:"+rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "client"), to, name)
		if d.Allowed && !is.Allowed {
			t.Fatalf("the client may (%s), the agent may not (%s)", d, is)
		}
		if d.Reason == policy.AskRule && !is.Allowed && is.Reason != policy.AskRule {
			t.Fatalf("a person decides for the client (%s) what the agent may not (%s)", d, is)
		}
	})
}

func TestExplainClient(t *testing.T) {
	const yaml = "permissions: {allow: ['MCP:claude-code/**']}\n"
	for client, want := range map[string]string{"claude-code": "true MCP:claude-code/**", "cursor": "false ", "": "true agent://librarian"} {
		origin := ""
		if client != "" {
			origin = policy.OriginMCP(client)
		}
		e, err := policy.ExplainFor(loadFleet(t, yaml, "", ""), reviewer, origin, librarian, "search")
		if err != nil {
			t.Fatal(err)
		}
		decided := &e.Caller
		if client != "" {
			decided = e.Client
		}
		if got := fmt.Sprintf("%v %s", e.Allowed, decided.Rule.Pattern); got != want || !e.Caller.Allowed || e.MCPClient != client {
			t.Errorf("%q: %s, want %s", client, got, want)
		}
		if client != "" && e.Target != "MCP:"+client+"/agent://librarian/search" {
			t.Errorf("target %s", e.Target)
		}
	}
	// Rules about clients of the control API are theirs alone, and those about MCP clients are not.
	const both = "control: {clients: [{name: batch, token: 'env:T'}, {name: other, token: 'env:U'}]}\npermissions: {allow: ['MCP:batch/**', 'CLIENT:batch/agent://librarian/search']}\n"
	for origin, want := range map[string]bool{"CLIENT:batch": true, "CLIENT:other": false, "MCP:batch": true, "MCP:other": false, "": true} {
		if e, err := policy.ExplainFor(loadFleet(t, both, "", ""), reviewer, origin, librarian, "search"); err != nil || e.Allowed != want || e.Origin() != origin {
			t.Errorf("%q: %+v, %v", origin, e, err)
		}
	}
	if e, err := policy.ExplainFor(loadFleet(t, both, "", ""), reviewer, "CLIENT:other", librarian, "search"); err != nil || e.Client.Reason != policy.NoControlRule {
		t.Errorf("%+v, %v", e, err)
	}
	// A client that the file does not list is not served, whatever the rules.
	e, err := policy.ExplainFor(loadFleet(t, "mcp: {clients: [{name: cursor}]}\n", "", ""), reviewer, "MCP:claude-code", librarian, "search")
	if err != nil || e.Allowed || !strings.Contains(strings.Join(e.Notes, ""), `does not list "claude-code"`) {
		t.Errorf("%+v, %v", e, err)
	}
}
