// Command concierge is the skill behind the capability triage-pr of the sample
// fleet: a process that itself calls other agents.
package main

import (
	"context"

	"github.com/agentd/agentd/agents/concierge/triage"
	"github.com/agentd/agentd/skill/sdk"
)

func main() {
	sdk.Main(func(ctx context.Context, in triage.Input) (triage.Answer, error) {
		return triage.Triage(ctx, sdk.Caller(), in)
	})
}
