package policy_test

import (
	"fmt"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

func ExampleCallerRules() {
	concierge := &fleet.Member{Agent: &fleet.AgentFile{Permissions: &fleet.Permissions{
		Allow: []fleet.PermissionRule{{Pattern: "RequestAgent:agent://pr-reviewer/*"}},
		Deny:  []fleet.PermissionRule{{Pattern: "RequestAgent:**/merge-*"}},
	}}}
	rules, err := policy.NewCallerRules(concierge)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, capability := range []string{"review-pr", "merge-pr"} {
		d := rules.Decide("agent://pr-reviewer", capability)
		fmt.Printf("%s: %v, %s\n", capability, d.Allowed, d)
	}
	// Output:
	// review-pr: true, an allow rule matches: allow "RequestAgent:agent://pr-reviewer/*"
	// merge-pr: false, a deny rule matches: deny "RequestAgent:**/merge-*"
}
