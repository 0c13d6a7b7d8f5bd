package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name, callerYAML, calleeYAML, keys string
		to                                 envelope.Address
		capability                         string
		allowed                            bool
		caller, callee                     policy.Reason // 0: nothing is known
		note                               string
	}{
		{"both say yes", "", "", "", librarian, "search", true, policy.PeerListed, policy.CallersOpen, ""},
		{"the caller says no", "permissions: {}\n", "", "", librarian, "search", false, policy.NoRule, policy.CallersOpen, ""},
		{"the callee says no", "", "", "    callers: []\n", librarian, "search", false, policy.PeerListed, policy.CallerNotListed, ""},
		{"no such capability", "", "", "", librarian, "fly", false, policy.PeerListed, policy.NoCapability, ""},
		{"a stranger", "", "", "", stranger, "x", false, policy.PeerNotListed, 0, "agent://stranger is no member of the fleet"},
		{"allowed and not listed", "permissions: {allow: ['**']}\n", "", "", stranger, "x", false, policy.AllowRule, 0, "(EAGENTRPC_NO_PEER)"},
		{"a person decides", "permissions: {ask: ['**']}\n", "", "", librarian, "search", false, policy.AskRule, policy.CallersOpen, "agentd approvals"},
		{"a person decides at the callee", "", "permissions: {ask: ['ServeAgent:**']}\n", "", librarian, "search", false, policy.PeerListed, policy.AskRule, "where agent://librarian runs"},
		{"who offers nothing", "permissions: {allow: ['**']}\n", "", "", reviewer, "x", false, policy.AllowRule, policy.NoCapability, "(EAGENTRPC_NO_PEER)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := policy.Explain(loadFleet(t, test.callerYAML, test.calleeYAML, test.keys), reviewer, test.to, test.capability)
			if err != nil {
				t.Fatal(err)
			}
			var callee policy.Reason
			if e.Callee != nil {
				callee = e.Callee.Reason
			}
			if e.Allowed != test.allowed || e.Caller.Reason != test.caller || callee != test.callee || !strings.Contains(strings.Join(e.Notes, "\n"), test.note) {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestExplainAnUnknownAgent(t *testing.T) {
	_, err := policy.Explain(loadFleet(t, "", "", ""), stranger, librarian, "search")
	var unknown *policy.UnknownMemberError
	if !errors.As(err, &unknown) || err.Error() != `the fleet has no agent "stranger"; it has pr-reviewer, librarian` {
		t.Error(err)
	}
}

// A pattern that cannot be read is an error at either end, rather than a call
// that is explained as if the rule were not there.
func TestUnreadablePatterns(t *testing.T) {
	long := strings.Repeat("x", policy.MaxPatternBytes+1)
	for name, spoil := range map[string]func(caller, callee *fleet.Member){
		"permissions": func(caller, _ *fleet.Member) {
			caller.Agent.Permissions = &fleet.Permissions{Allow: ruleList([]string{long})}
		},
		"scopes": func(_, callee *fleet.Member) { callee.Agent.Scopes = ruleList([]string{long}) },
	} {
		t.Run(name, func(t *testing.T) {
			f := loadFleet(t, "", "", "")
			caller, _ := f.Member("pr-reviewer")
			callee, _ := f.Member("librarian")
			spoil(caller, callee)
			if e, err := policy.Explain(f, reviewer, librarian, "search"); err == nil {
				t.Errorf("explained as %+v", e)
			}
			if _, err := policy.Reach(f); (err == nil) != (name == "scopes") { // a callee's scopes do not restrict its callers
				t.Errorf("reach: %v", err)
			}
		})
	}
}

func TestExplanationAsJSON(t *testing.T) {
	e, err := policy.Explain(loadFleet(t, "permissions:\n  deny: ['RequestAgent:**']\n", "", ""), reviewer, librarian, "search")
	if err != nil {
		t.Fatal(err)
	}
	e.Caller.Rule.Position.File = "agent.yaml"
	got, err := json.Marshal(e)
	if want := `{"from":"agent://pr-reviewer","to":"agent://librarian","capability":"search","target":"RequestAgent:agent://librarian/search",` +
		`"allowed":false,"caller":{"allowed":false,"rule":{"effect":"deny","pattern":"RequestAgent:**",` +
		`"position":{"file":"agent.yaml","line":3,"column":10,"pointer":"/permissions/deny/0"}},"reason":"a deny rule matches"},` +
		`"callee":{"allowed":true,"reason":"the capability does not say who may call it"}}`; err != nil || string(got) != want {
		t.Errorf("got\n%s, want\n%s (%v)", got, want, err)
	}
}

// Reach is what the broker's permissions follow: who may call anything of whom.
func TestReach(t *testing.T) {
	for _, test := range []struct {
		agentYAML string
		want      bool
	}{
		{"", true},
		{"permissions: {allow: []}\n", false},
		{"permissions: {allow: ['RequestAgent:agent://librarian/search']}\n", true},
		{"permissions: {ask: ['RequestAgent:**']}\n", true},
		{"permissions: {allow: ['RequestAgent:**'], deny: ['RequestAgent:agent://librarian/*']}\n", false},
		{"permissions: {allow: ['RequestAgent:agent://librarian/other']}\n", false},
	} {
		may, err := policy.Reach(loadFleet(t, test.agentYAML, "", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := may(reviewer, librarian); got != test.want {
			t.Errorf("%q: %v", test.agentYAML, got)
		}
		if may(librarian, reviewer) || may(stranger, librarian) {
			t.Errorf("%q: others may call", test.agentYAML)
		}
	}
}

// Of a peer outside of the fleet the contract may not be known: any capability
// may be there, so that the broker must let the agents talk.
func TestReachOfAnUnknownContract(t *testing.T) {
	f := loadFleet(t, "permissions: {}\n", "", "")
	caller, _ := f.Member("pr-reviewer")
	caller.Peers = append(caller.Peers, &fleet.Peer{Address: stranger})
	may, err := policy.Reach(f)
	if err != nil {
		t.Fatal(err)
	}
	if !may(reviewer, stranger) || may(reviewer, librarian) {
		t.Errorf("stranger %v, librarian %v", may(reviewer, stranger), may(reviewer, librarian))
	}
}
