package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

const (
	librarian = envelope.Address("agent://librarian")
	reviewer  = envelope.Address("agent://pr-reviewer")
	stranger  = envelope.Address("agent://stranger")
)

// loadFleet loads a fleet of pr-reviewer, which only calls, and librarian, with
// these agent.yaml and these keys of librarian's one capability.
func loadFleet(t testing.TB, callerYAML, calleeYAML, capabilityKeys string) *fleet.Fleet {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"fleet.yaml": "version: 1\nname: f\nagents: [{id: pr-reviewer, path: ./a}, {id: librarian, path: ./b}]\n" +
			"environments: {default: {peersRef: ./rpc-peers.yaml}}\n",
		"rpc-peers.yaml": "version: 1\npeers:\n  - agent: agent://librarian\n    transports: [{kind: memory, topics: {requests: x}}]\n",
		"a/agent.yaml":   "name: pr-reviewer\n" + callerYAML,
		"b/agent.yaml":   "name: librarian\n" + calleeYAML,
		"b/capabilities.yaml": "version: 1\nagent: agent://librarian\ntransports: [{kind: memory, topics: {requests: x}}]\n" +
			"capabilities:\n  - name: search\n" + capabilityKeys,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fleet.Load(dir, fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func callerRules(t testing.TB, agentYAML string) *policy.CallerRules {
	t.Helper()
	m, _ := loadFleet(t, agentYAML, "", "").Member("pr-reviewer")
	rules, err := policy.NewCallerRules(m)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestCallerRules(t *testing.T) {
	for _, test := range []struct {
		name, yaml string
		to         envelope.Address
		capability string
		allowed    bool
		reason     policy.Reason
		rule       string // as String says it, with the file's base name
	}{
		{"no block, a listed peer", "", librarian, "search", true, policy.PeerListed, `allow "agent://librarian" (rpc-peers.yaml:3)`},
		{"no block, another agent", "", stranger, "search", false, policy.PeerNotListed, ""},
		{"ask", "permissions:\n  ask:\n    - RequestAgent:agent://librarian/*\n", librarian, "search", false, policy.AskRule,
			`ask "RequestAgent:agent://librarian/*" (agent.yaml:4)`},
		{"ask wins over allow", "permissions:\n  allow: ['RequestAgent:**']\n  ask: ['RequestAgent:agent://librarian/*']\n", librarian, "search", false, policy.AskRule,
			`ask "RequestAgent:agent://librarian/*" (agent.yaml:4)`},
		{"deny wins over ask", "permissions:\n  ask: ['RequestAgent:**']\n  deny: ['RequestAgent:agent://librarian/*']\n", librarian, "search", false, policy.DenyRule,
			`deny "RequestAgent:agent://librarian/*" (agent.yaml:4)`},
		{"an empty block denies", "permissions: {}\n", librarian, "search", false, policy.NoRule, ""},
		{"an empty list denies", "permissions: {allow: []}\n", librarian, "search", false, policy.NoRule, ""},
		{"allowed", "permissions:\n  allow:\n    - RequestAgent:agent://librarian/*\n", librarian, "search", true, policy.AllowRule,
			`allow "RequestAgent:agent://librarian/*" (agent.yaml:4)`},
		{"another capability", "permissions: {allow: [RequestAgent:agent://librarian/read]}\n", librarian, "search", false, policy.NoRule, ""},
		{"deny wins over an earlier allow", "permissions:\n  allow: ['RequestAgent:**']\n  deny: ['RequestAgent:agent://*/sea*']\n", librarian, "search",
			false, policy.DenyRule, `deny "RequestAgent:agent://*/sea*" (agent.yaml:4)`},
		{"deny wins over a later allow", "permissions:\n  deny: ['RequestAgent:**']\n  allow: [RequestAgent:agent://librarian/search]\n", librarian, "search",
			false, policy.DenyRule, `deny "RequestAgent:**" (agent.yaml:3)`},
		{"deny alone allows nothing", "permissions: {deny: [RequestAgent:agent://librarian/x]}\n", librarian, "search", false, policy.NoRule, ""},
		{"a newline escapes no deny rule", "permissions: {allow: ['**'], deny: [RequestAgent:agent://librarian/*]}\n", librarian, "search\n", false,
			policy.DenyRule, `deny "RequestAgent:agent://librarian/*" (agent.yaml:2)`},
		{"another tool's rule does not count", "permissions: {allow: ['Bash:**']}\n", librarian, "search", false, policy.NoRule, ""},
		{"case matters", "permissions: {allow: [RequestAgent:agent://librarian/search]}\n", librarian, "Search", false, policy.NoRule, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := callerRules(t, test.yaml).Decide(test.to, test.capability)
			d.Rule.Position.File = filepath.Base(d.Rule.Position.File)
			rule := ""
			if d.Rule != (policy.Rule{Position: fleet.Position{File: "."}}) {
				rule = d.Rule.String()
			}
			if d.Allowed != test.allowed || d.Reason != test.reason || rule != test.rule {
				t.Errorf("%v %v %s", d.Allowed, d.Reason, rule)
			}
		})
	}
}

// Whatever the rules, what a deny rule covers is denied, and what is allowed an
// allow rule covers.
func TestDenyWins(t *testing.T) {
	pattern := rapid.SampledFrom([]string{
		"**", "RequestAgent:**", "RequestAgent:agent://librarian/*", "RequestAgent:agent://*/search", "RequestAgent:agent://lib**",
		"RequestAgent:agent://librarian/sea?ch", "RequestAgent:agent://stranger/*",
	})
	m, _ := loadFleet(t, "permissions: {}\n", "", "").Member("pr-reviewer")
	rapid.Check(t, func(t *rapid.T) {
		lists := [2][]string{rapid.SliceOfN(pattern, 0, 3).Draw(t, "allow"), rapid.SliceOfN(pattern, 0, 3).Draw(t, "deny")}
		agent, member := *m.Agent, *m
		agent.Permissions, member.Agent = &fleet.Permissions{Allow: ruleList(lists[0]), Deny: ruleList(lists[1])}, &agent
		rules, err := policy.NewCallerRules(&member)
		if err != nil {
			t.Fatal(err)
		}
		to := rapid.SampledFrom([]envelope.Address{librarian, stranger}).Draw(t, "to")
		name := rapid.SampledFrom([]string{"search", "read", "sea\nch"}).Draw(t, "capability")
		covered := func(patterns []string) bool {
			for _, p := range patterns {
				if naive(p, policy.Target(to, name)) {
					return true
				}
			}
			return false
		}
		if got, want := rules.Decide(to, name).Allowed, covered(lists[0]) && !covered(lists[1]); got != want {
			t.Fatalf("allowed %v, want %v", got, want)
		}
	})
}

func ruleList(patterns []string) []fleet.PermissionRule {
	var out []fleet.PermissionRule
	for _, p := range patterns {
		out = append(out, fleet.PermissionRule{Pattern: p})
	}
	return out
}

func TestCalleeRules(t *testing.T) {
	for _, test := range []struct {
		name, agentYAML, keys string
		from                  envelope.Address
		capability            string
		allowed               bool
		reason                policy.Reason
		pattern               string
	}{
		{"nothing said", "", "", stranger, "search", true, policy.CallersOpen, ""},
		{"listed", "", "    callers: [agent://pr-reviewer]\n", reviewer, "search", true, policy.CallerListed, "agent://pr-reviewer"},
		{"by a glob", "", "    callers: [agent://x, 'agent://pr-*']\n", reviewer, "search", true, policy.CallerListed, "agent://pr-*"},
		{"not listed", "", "    callers: ['agent://pr-*']\n", stranger, "search", false, policy.CallerNotListed, ""},
		{"an empty list is nobody", "", "    callers: []\n", reviewer, "search", false, policy.CallerNotListed, ""},
		{"undeclared", "", "", reviewer, "read", false, policy.NoCapability, ""},
		{"no scopes said: all granted", "", "    permissions: [network:read]\n", reviewer, "search", true, policy.CallersOpen, ""},
		{"granted", "scopes: [network:read]\n", "    permissions: [network:read]\n", reviewer, "search", true, policy.CallersOpen, ""},
		{"granted by a glob", "scopes: ['network:*']\n", "    permissions: [network:read]\n", reviewer, "search", true, policy.CallersOpen, ""},
		{"granted by default", "scopes: []\nsecurity: {defaultPermissions: [network:read]}\n", "    permissions: [network:read]\n", reviewer, "search", true,
			policy.CallersOpen, ""},
		{"not granted", "scopes: []\n", "    permissions: [network:read]\n", reviewer, "search", false, policy.ScopeMissing, "network:read"},
		{"not granted, seed 004", "security: {defaultPermissions: []}\n", "    permissions: [weather:read]\n", reviewer, "search", false, policy.ScopeMissing,
			"weather:read"},
		{"one of two", "scopes: [network:read]\n", "    permissions: [network:read, secrets:read]\n", reviewer, "search", false, policy.ScopeMissing,
			"secrets:read"},
		{"needs nothing", "scopes: []\n", "", reviewer, "search", true, policy.CallersOpen, ""},
		{"a person decides", "permissions: {ask: ['ServeAgent:agent://pr-*/search']}\n", "", reviewer, "search", false, policy.AskRule, "ServeAgent:agent://pr-*/search"},
		{"about another caller", "permissions: {ask: ['ServeAgent:agent://pr-*/search']}\n", "", stranger, "search", true, policy.CallersOpen, ""},
		{"about another capability", "permissions: {ask: ['ServeAgent:**/write']}\n", "", reviewer, "search", true, policy.CallersOpen, ""},
		{"about calls that it makes", "permissions: {ask: ['RequestAgent:**', '**']}\n", "", reviewer, "search", true, policy.CallersOpen, ""},
		{"nobody is asked about a stranger", "permissions: {ask: ['ServeAgent:**']}\n", "    callers: [agent://pr-reviewer]\n", stranger, "search", false,
			policy.CallerNotListed, ""},
		{"nor about what is not granted", "permissions: {ask: ['ServeAgent:**']}\nscopes: []\n", "    permissions: [network:read]\n", reviewer, "search", false,
			policy.ScopeMissing, "network:read"},
		{"a stranger learns nothing of scopes", "scopes: []\n", "    permissions: [network:read]\n    callers: [agent://pr-reviewer]\n", stranger, "search",
			false, policy.CallerNotListed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := loadFleet(t, "", test.agentYAML, test.keys).Member("librarian")
			rules, err := policy.NewCalleeRules(m)
			if err != nil {
				t.Fatal(err)
			}
			d := rules.Decide(test.from, test.capability)
			if d.Allowed != test.allowed || d.Reason != test.reason || d.Rule.Pattern != test.pattern {
				t.Errorf("%+v", d)
			}
			if d.Rule.Effect != policy.Ask && d.Rule.Pattern != "" && (filepath.Base(d.Rule.Position.File) != "capabilities.yaml" || d.Rule.Position.Line != 5) {
				t.Errorf("the rule stands at %+v", d.Rule.Position)
			}
		})
	}
}

// Rules that were not read from files are checked as well.
func TestPatternsAreChecked(t *testing.T) {
	f := loadFleet(t, "permissions: {}\n", "", "")
	long := ruleList([]string{strings.Repeat("x", policy.MaxPatternBytes+1)})
	long[0].Position = fleet.Position{File: "agent.yaml", Line: 7}
	caller, _ := f.Member("pr-reviewer")
	caller.Agent.Permissions.Deny = long
	if _, err := policy.NewCallerRules(caller); err == nil || !strings.Contains(err.Error(), "agent.yaml:7: ") {
		t.Errorf("permissions: %v", err)
	}
	callee, _ := f.Member("librarian")
	callee.Agent.Scopes = long
	if _, err := policy.NewCalleeRules(callee); err == nil || !strings.Contains(err.Error(), "agent.yaml:7: ") {
		t.Errorf("scopes: %v", err)
	}
	callee.Agent.Scopes = nil
	callee.Agent.Permissions = &fleet.Permissions{Serve: long}
	if _, err := policy.NewCalleeRules(callee); err == nil || !strings.Contains(err.Error(), "agent.yaml:7: ") {
		t.Errorf("calls that are served: %v", err)
	}
	callee.Agent.Permissions = nil
	callee.Capabilities.Capabilities[0].Callers = []string{""}
	if _, err := policy.NewCalleeRules(callee); err == nil || !strings.Contains(err.Error(), "capabilities.yaml:5: ") {
		t.Errorf("callers: %v", err)
	}
}

// Rules are not matched against a name that no capability can have, whoever
// allows it: its length is the choice of whoever sends the call.
func TestNamesAreBounded(t *testing.T) {
	longest := strings.Repeat("x", capability.MaxNameBytes)
	for name, rules := range map[string]*policy.CallerRules{
		"a listed peer": callerRules(t, ""), "an allow rule": callerRules(t, "permissions: {allow: ['**']}\n"),
	} {
		if d := rules.Decide(librarian, longest); !d.Allowed {
			t.Errorf("%s: the longest name: %s", name, d)
		}
		if d := rules.Decide(librarian, longest+"x"); d.Allowed || d.Reason != policy.NoCapability || d.Rule != (policy.Rule{}) {
			t.Errorf("%s: a longer name: %s", name, d)
		}
	}
}

func TestReasonsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for r := policy.AllowRule; r <= policy.NoClientTenant; r++ {
		if text, err := r.MarshalText(); err != nil || string(text) != r.String() {
			t.Errorf("reason %d is %q in JSON, %v", r, text, err)
		}
		if s := r.String(); seen[s] || strings.HasPrefix(s, "reason(") {
			t.Errorf("reason %d is %q", r, s)
		} else {
			seen[s] = true
		}
	}
	if len(seen) != 14 || (policy.NoClientTenant+1).String() != "reason(15)" || policy.Reason(0).String() != "reason(0)" {
		t.Errorf("%d reasons, and those that are none are %s and %s", len(seen), policy.NoClientTenant+1, policy.Reason(0))
	}
	rule := policy.Rule{Effect: policy.Deny, Pattern: "x"}
	if got := (policy.Decision{Reason: policy.DenyRule, Rule: rule}).String(); got != `a deny rule matches: deny "x"` {
		t.Error(got)
	}
	if got := (policy.Decision{Reason: policy.NoRule}).String(); got != policy.NoRule.String() {
		t.Error(got)
	}
}
