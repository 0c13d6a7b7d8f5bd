package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) fleetValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check every file of the fleet; exit status 3 when there are errors",
		Args:  cobra.NoArgs,
		RunE: a.do(func(context.Context, []string) error {
			root, err := a.fleetRoot()
			if err != nil {
				return err
			}
			findings, err := fleet.Validate(root, plugged(fleet.LoadOptions{}))
			if err != nil {
				return err
			}
			if err := a.writeFindings(findings); err != nil {
				return err
			}
			if findings.Failed() {
				return &exitError{code: exitFinding}
			}
			return nil
		}),
	}
}

func (a *app) writeFindings(findings fleet.Findings) error {
	if a.output == output.Table {
		return findings.WriteText(a.stdout)
	}
	if findings == nil {
		findings = fleet.Findings{}
	}
	return output.WriteJSON(a.stdout, a.output, struct {
		OK       bool           `json:"ok"`
		Findings fleet.Findings `json:"findings"`
	}{!findings.Failed(), findings})
}
