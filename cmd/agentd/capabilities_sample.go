package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/schema"
)

func (a *app) capabilitiesSampleCommand() *cobra.Command {
	var choice contractChoice
	var side string
	cmd := &cobra.Command{
		Use:     "sample <capability>",
		Short:   "Print a payload that the capability's schema accepts",
		Example: "  agentd capabilities sample review-pr | agentd request pr-reviewer review-pr -",
		Args:    cobra.ExactArgs(1),
		RunE: a.do(func(_ context.Context, args []string) error {
			c, err := a.function(choice, args[0])
			if err != nil {
				return err
			}
			contract, err := contract(c, side)
			if err != nil {
				return err
			}
			if contract == nil {
				return fmt.Errorf("capability %q has no schema for the %s: any JSON is accepted", c.Name, side)
			}
			value, err := schema.Sample(contract.Schema)
			if err != nil {
				return fmt.Errorf("capability %q, %s: %w", c.Name, side, err)
			}
			return output.WriteJSONBytes(a.stdout, a.output, value)
		}),
	}
	choice.register(cmd)
	cmd.Flags().StringVar(&side, "side", "request", "request or response")
	return cmd
}
