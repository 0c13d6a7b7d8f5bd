package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/capability/lint"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) capabilitiesLintCommand() *cobra.Command {
	var profile string
	var outputs bool
	cmd := &cobra.Command{
		Use:   "lint <file>",
		Short: "Find what a capabilities file allows and its readers do not; exit status 3 on errors",
		Long: "Find what a capabilities file allows and its readers do not.\n\n" +
			"A schema that agentd enforces to the letter may still be refused by a model provider that\n" +
			"is given the capability as a tool. The profiles are draft-07-subset (agentd itself),\n" +
			"openai-strict, anthropic and gemini.",
		Example: "  agentd capabilities lint agents/pr-reviewer/capabilities.yaml --profile openai-strict",
		Args:    cobra.ExactArgs(1),
		RunE: a.do(func(_ context.Context, args []string) error {
			p, err := lint.ParseProfile(profile)
			if err != nil {
				return usage("--profile: %s", err)
			}
			findings, err := lint.File(args[0], p, lint.Options{Outputs: outputs, SecondOpinion: loadOptions().SecondOpinion})
			if err != nil {
				return err
			}
			if a.output == output.Table {
				err = findings.WriteText(a.stdout)
			} else {
				if findings == nil {
					findings = lint.Findings{}
				}
				err = output.WriteJSON(a.stdout, a.output, struct {
					OK       bool          `json:"ok"`
					Profile  lint.Profile  `json:"profile"`
					Findings lint.Findings `json:"findings"`
				}{!findings.Failed(), p, findings})
			}
			if err == nil && findings.Failed() {
				err = &exitError{code: exitFinding}
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&profile, "profile", string(lint.Draft07Subset), "draft-07-subset, openai-strict, anthropic or gemini")
	cmd.Flags().BoolVar(&outputs, "outputs", false, "judge output schemas by a provider's rules, too")
	return cmd
}
