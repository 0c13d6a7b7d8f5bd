package approvals

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A waitingCall is a call of one agent that waits for a decision.
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
	header := []string{"ID", "AGENT", "PEER", "CAPABILITY", "TENANT", "WAITS", "LEFT", "RULE"}
	if payload {
		header = append(header, "PAYLOAD")
	}
	rows := make([][]string, len(waiting))
	for i, c := range waiting {
		rows[i] = []string{
			c.ID, c.Agent, string(c.Peer), c.Capability, cmp.Or(c.TenantID, "-"), time.Since(c.Since).Round(time.Second).String(),
			time.Until(c.Until).Round(time.Second).String(), c.Rule,
		}
		if payload {
			rows[i] = append(rows[i], string(c.Payload))
		}
	}
	return env.WriteTable(header, rows)
}

// A Decision is one `agentd approvals approve` or deny.
type Decision struct {
	// ID is the id of the waiting call.
	ID string
	// Agent is the calling agent; "" means to look for the call in all of them.
	Agent   string
	Approve bool
	Reason  string
}

// Decide lets a waiting call proceed, or denies it. The id may be cut as long as one
// waiting call begins with it: a person copies it from a list.
func Decide(ctx context.Context, env *cli.Env, d Decision) error {
	if d.ID == "" {
		return cli.Usage("<id>: must not be empty; `agentd approvals list` shows the ids")
	}
	call, err := find(ctx, env, d)
	if err != nil {
		return err
	}
	err = env.EachRunning(ctx, call.Agent, func(_ string, client *control.Client) error {
		return client.Decide(ctx, call.ID, d.Approve, d.Reason)
	})
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return env.WriteJSON(map[string]any{"id": call.ID, "agent": call.Agent, "approved": d.Approve})
	}
	verb := "deny"
	if d.Approve {
		verb = "approve"
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: the decision about %s is recorded: %s\n", call.Agent, call.ID, verb)
	return err
}

// find returns the one waiting call whose id begins with the decision's.
func find(ctx context.Context, env *cli.Env, d Decision) (waitingCall, error) {
	var found []waitingCall
	err := env.EachRunning(ctx, d.Agent, func(id string, client *control.Client) error {
		calls, err := client.Approvals(ctx, false)
		for _, c := range calls {
			if strings.HasPrefix(c.ID, d.ID) {
				found = append(found, waitingCall{id, c})
			}
		}
		return err
	})
	switch {
	case err != nil:
		return waitingCall{}, err
	case len(found) == 0:
		return waitingCall{}, &control.NoApprovalError{ID: d.ID}
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, c := range found {
			ids[i] = c.ID
		}
		return waitingCall{}, cli.Usage("<id>: %d waiting calls begin with %q: %s", len(found), d.ID, strings.Join(ids, ", "))
	}
	return found[0], nil
}
