package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) dlqCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "dlq",
		Short: "Requests that could not be served, kept for a person",
		Long: "Requests to durable capabilities that could not be served after all their attempts, with their\n" +
			"bodies, kept by the agent that they are for. Putting one back or dropping it is a record of the\n" +
			"agent's audit log (kind lifecycle), with the user that did it.",
	})
	cmd.AddCommand(a.dlqListCommand(), a.dlqShowCommand(),
		a.dlqChangeCommand("redrive", "Put requests back, to be served again", "put back", (*control.Client).Redrive),
		a.dlqChangeCommand("drop", "Remove requests for good", "dropped", (*control.Client).Drop))
	return cmd
}

// A letterRow is a dead letter of one agent.
type letterRow struct {
	Agent string `json:"agent"`
	control.Letter
}

func (a *app) dlqListCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "list", Short: "List the requests, the oldest first; no bodies", Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			rows := []letterRow{}
			err := a.eachRunning(ctx, agent, func(id string, client *control.Client) error {
				letters, err := client.Letters(ctx)
				if _, keepsNone := errors.AsType[*control.RefusedError](err); keepsNone && agent == "" {
					return nil
				}
				for _, l := range letters {
					rows = append(rows, letterRow{id, l})
				}
				return err
			})
			if err != nil {
				return err
			}
			if a.output != output.Table {
				return writeList(a, rows)
			}
			cells := make([][]string, len(rows))
			for i, r := range rows {
				cells[i] = []string{
					strconv.FormatUint(r.Number, 10), r.Agent, string(r.From), r.Capability, time.Since(r.Time).Round(time.Second).String(),
					strconv.Itoa(r.Attempts), strconv.Itoa(r.Bytes), r.Reason,
				}
			}
			return output.WriteTable(a.stdout, []string{"NUMBER", "AGENT", "FROM", "CAPABILITY", "AGE", "ATTEMPTS", "BYTES", "REASON"}, cells)
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that was called (default: every agent that runs here)")
	return cmd
}

func (a *app) dlqShowCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "show --agent <id> <number>", Short: "Show one request with its body, as JSON", Args: cobra.ExactArgs(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			numbers, err := letterNumbers(args)
			if err != nil {
				return err
			}
			return a.eachRunning(ctx, agent, func(_ string, client *control.Client) error {
				l, err := client.Letter(ctx, numbers[0])
				if err != nil {
					return err
				}
				return output.WriteJSON(a.stdout, a.output, l)
			})
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that was called (required)")
	_ = cmd.MarkFlagRequired("agent") // fails only for a flag that does not exist
	return cmd
}

func (a *app) dlqChangeCommand(verb, short, done string, change func(*control.Client, context.Context, uint64) (control.Letter, error)) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: verb + " --agent <id> <number>…", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			numbers, err := letterNumbers(args)
			if err != nil {
				return err
			}
			rows := []letterRow{}
			err = a.eachRunning(ctx, agent, func(id string, client *control.Client) error {
				var errs []error
				for _, number := range numbers {
					l, err := change(client, ctx, number)
					if err != nil {
						errs = append(errs, err)
						continue
					}
					rows = append(rows, letterRow{id, l})
				}
				return errors.Join(errs...)
			})
			if a.output != output.Table {
				return errors.Join(err, writeList(a, rows))
			}
			for _, r := range rows {
				if _, werr := fmt.Fprintf(a.stdout, "%d %s: %s of %s\n", r.Number, done, output.Printable(r.Capability), r.From); werr != nil {
					return errors.Join(err, werr)
				}
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that was called (required)")
	_ = cmd.MarkFlagRequired("agent") // fails only for a flag that does not exist
	return cmd
}

func letterNumbers(args []string) ([]uint64, error) {
	numbers := make([]uint64, len(args))
	for i, arg := range args {
		var err error
		if numbers[i], err = strconv.ParseUint(arg, 10, 64); err != nil {
			return nil, usage("%q is no number of a letter: `agentd dlq list` shows them", arg)
		}
	}
	return numbers, nil
}
