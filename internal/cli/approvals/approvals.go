package approvals

import (
	"context"
	"errors"
	"fmt"
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
		return env.WriteJSON(waiting)
	}
	header := []string{"ID", "AGENT", "PEER", "CAPABILITY", "WAITS", "LEFT", "RULE"}
	if payload {
		header = append(header, "PAYLOAD")
	}
	rows := make([][]string, len(waiting))
	for i, c := range waiting {
		rows[i] = []string{
			c.ID, c.Agent, string(c.Peer), c.Capability, time.Since(c.Since).Round(time.Second).String(),
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

// Decide lets a waiting call proceed, or denies it. It offers the decision to
// one agent after the other until one knows the call: ids are random, so no two
// agents have the same.
func Decide(ctx context.Context, env *cli.Env, d Decision) error {
	decidedBy := ""
	err := env.EachRunning(ctx, d.Agent, func(id string, client *control.Client) error {
		if decidedBy != "" {
			return nil
		}
		err := client.Decide(ctx, d.ID, d.Approve, d.Reason)
		if _, unknown := errors.AsType[*control.NoApprovalError](err); unknown {
			return nil
		}
		decidedBy = id
		return err
	})
	switch {
	case err != nil:
		return err
	case decidedBy == "":
		return &control.NoApprovalError{ID: d.ID}
	}
	if env.Format != output.Table {
		return env.WriteJSON(map[string]any{"id": d.ID, "agent": decidedBy, "approved": d.Approve})
	}
	verb := "deny"
	if d.Approve {
		verb = "approve"
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: the decision about %s is recorded: %s\n", decidedBy, d.ID, verb)
	return err
}
