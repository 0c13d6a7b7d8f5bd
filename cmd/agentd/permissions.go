package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/policy"
)

func (a *app) permissionsCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{Use: "permissions", Short: "Look at who may call whom"})
	cmd.AddCommand(a.permissionsExplainCommand())
	return cmd
}

func (a *app) permissionsExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain <from> <to> <capability>",
		Short: "Say whether a call is allowed, and which rule decides",
		Long: "Say whether a call is allowed, and which rule of which file decides, at each end.\n" +
			"The exit status is 3 when the call would be denied.",
		Example: "  agentd permissions explain concierge pr-reviewer review-pr",
		Args:    cobra.ExactArgs(3),
		RunE: a.do(func(_ context.Context, args []string) error {
			from, err := agentAddress(args[0])
			if err != nil {
				return err
			}
			to, err := agentAddress(args[1])
			if err != nil {
				return err
			}
			f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
			if err != nil {
				return err
			}
			e, err := policy.Explain(f, from, to, args[2])
			if err != nil {
				return err
			}
			if err := a.writeExplanation(e); err != nil {
				return err
			}
			if !e.Allowed {
				return &exitError{code: exitFinding}
			}
			return nil
		}),
	}
}

// agentAddress reads an address, or the id alone.
func agentAddress(text string) (envelope.Address, error) {
	if !strings.Contains(text, "://") {
		text = string(envelope.AddressOf(text))
	}
	address, err := envelope.ParseAddress(text)
	if err != nil {
		return "", usage("%s", err)
	}
	return address, nil
}

func (a *app) writeExplanation(e *policy.Explanation) error {
	if a.output != output.Table {
		return output.WriteJSON(a.stdout, a.output, e)
	}
	colors := output.ColorsFor(a.stdout, a.getenv)
	verdict := colors.Good("✓ allowed")
	if !e.Allowed {
		verdict = colors.Bad("✗ denied")
	}
	fmt.Fprintf(a.stdout, "%s  %s → %s/%s\n", verdict, e.From, e.To, output.Printable(e.Capability))
	rows := [][]string{decisionRow("caller", e.Caller)}
	if e.Callee != nil {
		rows = append(rows, decisionRow("callee", *e.Callee))
	}
	if err := output.WriteTable(a.stdout, []string{"END", "ALLOWED", "RULE", "AT", "REASON"}, rows); err != nil {
		return err
	}
	for _, note := range e.Notes {
		fmt.Fprintln(a.stdout, "!", note)
	}
	return nil
}

func decisionRow(end string, d policy.Decision) []string {
	allowed, rule, at := "no", "-", "-"
	if d.Allowed {
		allowed = "yes"
	}
	if d.Rule != (policy.Rule{}) {
		rule = fmt.Sprintf("%s %s", d.Rule.Effect, d.Rule.Pattern)
		at = fmt.Sprintf("%s:%d", d.Rule.Position.File, d.Rule.Position.Line)
	}
	return []string{end, allowed, rule, at, d.Reason.String()}
}
