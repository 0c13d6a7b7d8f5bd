package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) fleetGraphCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "graph", Short: "Draw who may call whom", Args: cobra.NoArgs,
		Example: "  agentd fleet graph --format dot | dot -Tsvg > fleet.svg",
		RunE: a.do(func(context.Context, []string) error {
			f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
			if err != nil {
				return err
			}
			g := f.Graph(fleet.GraphOptions{})
			if a.output != output.Table {
				return output.WriteJSON(a.stdout, a.output, g)
			}
			switch fleet.GraphFormat(format) {
			case fleet.FormatMermaid, fleet.FormatDOT, fleet.FormatJSON:
				return g.Write(a.stdout, fleet.GraphFormat(format))
			}
			return usage("--format: must be mermaid, dot or json, not %q", format)
		}),
	}
	cmd.Flags().StringVar(&format, "format", "mermaid", "mermaid, dot or json")
	return cmd
}
