package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
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
