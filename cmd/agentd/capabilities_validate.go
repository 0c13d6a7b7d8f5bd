package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/schema"
)

func (a *app) capabilitiesValidateCommand() *cobra.Command {
	var choice contractChoice
	var payload, side string
	cmd := &cobra.Command{
		Use:   "validate <capability> --payload <json | @file | ->",
		Short: "Check a payload against a capability's schema; exit status 3 when it is invalid",
		Example: "  agentd capabilities validate review-pr --payload @pr.json\n" +
			"  agentd capabilities validate review-pr --side response --payload '{\"verdict\":\"approve\"}'",
		Args: cobra.ExactArgs(1),
		RunE: a.do(func(_ context.Context, args []string) error {
			c, err := a.function(choice, args[0])
			if err != nil {
				return err
			}
			side, err := contract(c, side)
			if err != nil {
				return err
			}
			data, err := a.payload(payload)
			if err != nil {
				return err
			}
			return a.writeReport(side.Check(data))
		}),
	}
	choice.register(cmd)
	cmd.Flags().StringVar(&payload, "payload", "", "the payload, @file, or - for standard input (required)")
	cmd.Flags().StringVar(&side, "side", "request", "request or response")
	_ = cmd.MarkFlagRequired("payload") // fails only for a flag that does not exist
	return cmd
}

func (a *app) writeReport(report schema.Report) error {
	violations := report.Violations
	if report.Verdict == schema.Malformed {
		violations = []schema.Violation{{Message: report.Syntax.Error()}}
	}
	if a.output != output.Table {
		if violations == nil {
			violations = []schema.Violation{}
		}
		err := output.WriteJSON(a.stdout, a.output, struct {
			Verdict    string             `json:"verdict"`
			Violations []schema.Violation `json:"violations"`
			Truncated  bool               `json:"truncated"`
		}{report.Verdict.String(), violations, report.Truncated})
		if err != nil {
			return err
		}
	} else {
		a.printReport(report, violations)
	}
	if report.Verdict != schema.Valid {
		return &exitError{code: exitFinding}
	}
	return nil
}

func (a *app) printReport(report schema.Report, violations []schema.Violation) {
	colors := output.ColorsFor(a.stdout, a.getenv)
	if report.Verdict == schema.Valid {
		fmt.Fprintf(a.stdout, "%s valid\n", colors.Good("✓"))
		return
	}
	fmt.Fprintf(a.stdout, "%s %s\n", colors.Bad("✗"), report.Verdict)
	for _, v := range violations {
		path, _ := json.Marshal(v.Path) // a string always marshals
		fmt.Fprintf(a.stdout, "  %s %s\n", path, output.Printable(v.Message))
	}
	if report.Truncated {
		fmt.Fprintln(a.stdout, "  … and more")
	}
}
