package triage_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/agents/concierge/triage"
	"github.com/agentd/agentd/codegen/typed"
)

// In the fleet the caller is sdk.Caller(); here it is a function that knows one
// review.
func ExampleTriage() {
	call := typed.CallerFunc(func(_ context.Context, c typed.Call) (json.RawMessage, error) {
		response := `{"results":[{"title":"Logging","path":"notes/logging.md","line":5,"excerpt":"Library code does not print.","score":7}]}`
		if c.Capability == "review-pr" {
			response = `{"verdict":"comment","summary":"1 finding.","findings":[
				{"file":"src/cart.ts","line":10,"severity":"med","message":"Console output is left.","rule":"debug-print"}]}`
		}
		return json.RawMessage(response), nil
	})
	answer, err := triage.Triage(context.Background(), call, triage.Input{PRURL: "https://github.com/o/r/pull/1", Title: "hotfix: cart"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Priority, answer.Verdict)
	for _, reason := range answer.Reasons {
		fmt.Println("-", reason)
	}
	fmt.Println("see", answer.Notes[0].Title)
	// Output:
	// p1 comment
	// - The title says "hotfix".
	// - src/cart.ts:10 (debug-print, med): Console output is left.
	// see Logging
}
