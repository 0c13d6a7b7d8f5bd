package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) fleetListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the members of the fleet", Args: cobra.NoArgs,
		RunE: a.do(func(context.Context, []string) error {
			f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
			if err != nil {
				return err
			}
			if a.output == output.Table {
				return f.List().WriteText(a.stdout)
			}
			return output.WriteJSON(a.stdout, a.output, f.List())
		}),
	}
}

func (a *app) fleetCapabilitiesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "capabilities", Short: "List what the members offer", Args: cobra.NoArgs,
		RunE: a.do(func(context.Context, []string) error {
			f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
			if err != nil {
				return err
			}
			if a.output == output.Table {
				return f.Capabilities().WriteText(a.stdout)
			}
			return output.WriteJSON(a.stdout, a.output, f.Capabilities())
		}),
	}
}
