package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) capabilitiesShowCommand() *cobra.Command {
	var choice contractChoice
	cmd := &cobra.Command{
		Use:   "show <capability>",
		Short: "Show a capability as its callers see it",
		Example: "  agentd capabilities show review-pr\n" +
			"  agentd capabilities show review-pr --capabilities ./capabilities.yaml -o json",
		Args: cobra.ExactArgs(1),
		RunE: a.do(func(_ context.Context, args []string) error {
			doc, err := a.document(choice, args[0])
			if err != nil {
				return err
			}
			c, err := a.function(choice, args[0])
			if err != nil {
				return err
			}
			if a.output == output.Table {
				return a.showCapability(doc, c)
			}
			return output.WriteJSON(a.stdout, a.output, struct {
				Agent string `json:"agent"`
				Name  string `json:"name"`
				capability.ToolSchema
			}{string(doc.Agent), c.Name, doc.Published().ToolSchemas[c.Name]})
		}),
	}
	choice.register(cmd)
	return cmd
}

func (a *app) showCapability(doc *capability.Document, c *capability.Capability) error {
	colors := output.ColorsFor(a.stdout, a.getenv)
	fmt.Fprintf(a.stdout, "%s  %s\n", colors.Bold(c.Name), output.Printable(c.Description))
	rows := [][]string{
		{"agent", string(doc.Agent)}, {"file", doc.Path}, {"skill", c.Skill}, {"digest", c.Digest},
		{"idempotent", fmt.Sprint(c.Idempotent)},
	}
	if c.Timeout > 0 {
		rows = append(rows, []string{"timeoutMs", fmt.Sprint(c.Timeout.Milliseconds())})
	}
	if c.Progress {
		rows = append(rows, []string{"progress", "true"})
	}
	if c.Since != "" {
		rows = append(rows, []string{"since", c.Since})
	}
	if err := output.WriteTable(a.stdout, []string{"FIELD", "VALUE"}, rows); err != nil {
		return err
	}
	for _, side := range []struct {
		name     string
		contract *capability.Contract
	}{{"inputSchema", c.Input}, {"outputSchema", c.Output}} {
		fmt.Fprintf(a.stdout, "\n%s\n", colors.Bold(side.name))
		if side.contract == nil {
			fmt.Fprintln(a.stdout, "none: any JSON is accepted")
			continue
		}
		if err := output.WriteJSONBytes(a.stdout, output.JSON, side.contract.Source); err != nil {
			return err
		}
	}
	return nil
}
