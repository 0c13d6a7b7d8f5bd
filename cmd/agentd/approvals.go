package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) approvalsCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "approvals",
		Short: "The calls that wait for a person's decision",
		Long: "The calls that wait for a person's decision, because a permission of the calling agent says `ask`.\n" +
			"Each decision, with who made it and why, is a record of the agent's audit log (kind approval).\n" +
			"Who decides is the user that runs this command: the kernel tells the agent.",
	})
	cmd.AddCommand(
		a.approvalsListCommand(),
		a.approvalsDecideCommand("approve", "Let a waiting call go on", true),
		a.approvalsDecideCommand("deny", "Refuse a waiting call", false),
	)
	return cmd
}

// An approvalRow is a waiting call of one agent.
type approvalRow struct {
	Agent string `json:"agent"`
	control.Approval
}

func (a *app) approvalsListCommand() *cobra.Command {
	var agent string
	var payload bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the calls that wait",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the calling agent (default: every agent that runs here)")
	cmd.Flags().BoolVar(&payload, "show-payload", false, "show what would be sent")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		rows := []approvalRow{}
		err := a.eachRunning(ctx, agent, func(id string, client *control.Client) error {
			waiting, err := client.Approvals(ctx, payload)
			for _, w := range waiting {
				rows = append(rows, approvalRow{id, w})
			}
			return err
		})
		if err != nil {
			return err
		}
		if a.output != output.Table {
			return output.WriteJSON(a.stdout, a.output, rows)
		}
		var cells [][]string
		for _, r := range rows {
			row := []string{
				r.ID, r.Agent, string(r.Peer), output.Printable(r.Capability), time.Since(r.Since).Round(time.Second).String(),
				time.Until(r.Until).Round(time.Second).String(), output.Printable(r.Rule),
			}
			if payload {
				row = append(row, output.Printable(string(r.Payload)))
			}
			cells = append(cells, row)
		}
		header := []string{"ID", "AGENT", "PEER", "CAPABILITY", "WAITS", "LEFT", "RULE"}
		if payload {
			header = append(header, "PAYLOAD")
		}
		return output.WriteTable(a.stdout, header, cells)
	})
	return cmd
}

func (a *app) approvalsDecideCommand(verb, short string, approve bool) *cobra.Command {
	var agent, reason string
	cmd := &cobra.Command{
		Use:     verb + " <id>",
		Short:   short,
		Example: "  agentd approvals " + verb + " 019aa8f4-5c1e-7b02-9d3c-2f6e8a417c55 --reason 'ticket 1234'",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the calling agent (default: whichever has the call)")
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is recorded, and the caller of a denied call sees it")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		decided := ""
		err := a.eachRunning(ctx, agent, func(id string, client *control.Client) error {
			if decided != "" {
				return nil
			}
			err := client.Decide(ctx, args[0], approve, reason)
			if _, elsewhere := errors.AsType[*control.NoApprovalError](err); elsewhere {
				return nil
			}
			decided = id
			return err
		})
		switch {
		case err != nil:
			return err
		case decided == "":
			return &control.NoApprovalError{ID: args[0]}
		}
		if a.output != output.Table {
			return output.WriteJSON(a.stdout, a.output, map[string]any{"id": args[0], "agent": decided, "approved": approve})
		}
		_, err = fmt.Fprintf(a.stdout, "%s: the decision about %s is recorded: %s\n", decided, args[0], verb)
		return err
	})
	return cmd
}

// eachRunning calls use with each agent of the fleet that runs here, or with the
// one that is named.
func (a *app) eachRunning(ctx context.Context, agent string, use func(id string, client *control.Client) error) error {
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	paths, err := a.paths(f)
	if err != nil {
		return err
	}
	running := []string{agent}
	if agent == "" {
		if running, err = paths.Running(ctx); err != nil {
			return err
		}
	}
	if len(running) == 0 {
		return errors.New("no agent of this fleet is running here")
	}
	for _, id := range running {
		client := control.NewClient(paths.Socket(id))
		err := use(id, client)
		client.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}
