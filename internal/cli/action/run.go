package action

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/spelling"
)

// A Run is one `agentd action run`.
type Run struct {
	// Action is the id of an action, or its name.
	Action string
	// Parameters is JSON, @file or "-". Nil is none.
	Parameters *string
	// Agent is the id of the agent, or "" for the only one that has the action.
	Agent string
	// Timeout is 0 for the action's own.
	Timeout time.Duration
	// TraceID may be "".
	TraceID string
}

// Execute has a running agent execute the action, and prints the outcome. One without
// success is [cli.ExitCall].
func Execute(ctx context.Context, env *cli.Env, r Run) error {
	if r.Timeout < 0 || r.Timeout%time.Millisecond != 0 {
		return cli.Usage("--timeout: must be a positive number of milliseconds, such as 500ms or 10s")
	}
	inv := action.Invocation{CapabilityID: r.Action, TraceID: r.TraceID, TimeoutMS: r.Timeout.Milliseconds()}
	if r.Parameters != nil {
		var err error
		if inv.Parameters, err = env.Payload(*r.Parameters); err != nil {
			return err
		}
	}
	agent, err := find(env, r.Agent, r.Action)
	if err != nil {
		return err
	}
	var out action.Outcome
	err = env.EachRunning(ctx, agent, func(_ string, client *control.Client) (err error) {
		out, err = client.RunAction(ctx, inv)
		return err
	})
	if err != nil {
		return err
	}
	if err := env.WriteJSON(out); err != nil {
		return err
	}
	if !out.Success {
		return &cli.ExitError{Code: cli.ExitCall}
	}
	return nil
}

// find returns the agent whose action it is, unless one is named already.
func find(env *cli.Env, agent, wanted string) (string, error) {
	if agent != "" {
		return agent, nil
	}
	f, _, err := env.InspectFleet()
	if err != nil {
		return "", err
	}
	var found, names []string
	for _, m := range f.Members {
		for _, a := range offered(m) {
			names = append(names, a.ID)
			if (a.ID == wanted || a.Name == wanted) && !slices.Contains(found, m.ID) {
				found = append(found, m.ID)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", cli.Usage("the action %q is one of several agents (%s): name one with --agent", wanted, strings.Join(found, ", "))
	case len(names) == 0:
		return "", cli.Usage("no agent of the fleet %s has actions; see layers.capabilities in docs/actions.md", f.Name)
	}
	return "", cli.Usage("no agent of the fleet %s has the action %q; there is %s", f.Name, wanted, spelling.Among(wanted, names))
}

// offered returns the actions of a member, as its files declare them.
func offered(m *fleet.Member) []action.Action {
	var all []action.Action
	if m.ClientOnly() {
		return nil
	}
	for _, entry := range m.Agent.Actions {
		if c, ok := m.Capabilities.Lookup(entry.ID); ok {
			all = append(all, action.FromCapability(c))
		}
	}
	return all
}
