package approvals

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A waitingCall is a call that one agent makes or serves, and that waits for a decision.
type waitingCall struct {
	Agent string `json:"agent"`
	control.Approval
}

// List prints the waiting calls of the named agent, or of all that run here, and
// with payload what they would send.
func List(ctx context.Context, env *cli.Env, agent string, payload bool) error {
	waiting := []waitingCall{}
	err := env.EachRunning(ctx, agent, func(id string, client *control.Client) error {
		calls, err := client.Approvals(ctx, payload)
		for _, c := range calls {
			waiting = append(waiting, waitingCall{id, c})
		}
		return err
	})
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return cli.WriteList(env, waiting)
	}
	header := []string{"ID", "ROLE", "AGENT", "PEER", "CAPABILITY", "TENANT", "WAITS", "LEFT", "RULE"}
	if payload {
		header = append(header, "PAYLOAD")
	}
	rows := make([][]string, len(waiting))
	for i, c := range waiting {
		rows[i] = []string{
			c.ID, string(c.Role), c.Agent, string(c.Peer), c.Capability, cmp.Or(c.TenantID, "-"), time.Since(c.Since).Round(time.Second).String(),
			time.Until(c.Until).Round(time.Second).String(), c.Rule,
		}
		if payload {
			rows[i] = append(rows[i], string(c.PayloadBytes()))
		}
	}
	return env.WriteTable(header, rows)
}

// find returns the one waiting call whose id begins with id, with its payload. agent is
// the one where it waits; "" means to look for it in all of them.
func find(ctx context.Context, env *cli.Env, agent, id string) (waitingCall, error) {
	if id == "" {
		return waitingCall{}, cli.Usage("<id>: must not be empty; `agentd approvals list` shows the ids")
	}
	var found []waitingCall
	err := env.EachRunning(ctx, agent, func(name string, client *control.Client) error {
		calls, err := client.Approvals(ctx, true)
		for _, c := range calls {
			if strings.HasPrefix(c.ID, id) {
				found = append(found, waitingCall{name, c})
			}
		}
		return err
	})
	switch {
	case err != nil:
		return waitingCall{}, err
	case len(found) == 0:
		return waitingCall{}, &control.NoApprovalError{ID: id}
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, c := range found {
			ids[i] = c.ID
		}
		return waitingCall{}, cli.Usage("<id>: %d waiting calls begin with %q: %s", len(found), id, strings.Join(ids, ", "))
	}
	return found[0], nil
}
