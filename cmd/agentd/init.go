package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/scaffold"
)

// initCommand returns `agentd init`, which makes a fleet, and `agentd init agent`.
func (a *app) initCommand() *cobra.Command {
	var langs []string
	cmd := &cobra.Command{
		Use:   "init [folder]",
		Short: "Write a fleet of two agents that runs, or add an agent to a fleet",
		Long: "Write a fleet into a folder: two agents that call each other, each with a contract, a skill, a test and typed\n" +
			"clients. Without --lang they are in what is installed here. The kits for skills come out of agentd, into the\n" +
			"folder kits: nothing is downloaded.\n\n" +
			"python      workers on the kit for Python 3.10 or later, with the standard library only\n" +
			"typescript  workers on the kit for TypeScript, which Node.js 22.18 or later runs as it is: no build, no npm\n" +
			"go          workers on the kit for Go, whose sources are put into kits/go: Go 1.26 or later\n" +
			"bash        programs that are started for each call, with jq; without typed clients\n\n" +
			"Files that are there are not overwritten: if one is, nothing is written.",
		Example: "  agentd init my-fleet\n  agentd init my-fleet --lang python,typescript\n  agentd init agent summarizer --lang go",
		Args:    arguments(0, "folder"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return scaffold.Init(ctx, &a.Env, dir, langs)
		}),
	}
	cmd.Flags().StringSliceVar(&langs, "lang", nil, "languages of the two agents: one or two of python, typescript, go and bash")
	cmd.AddCommand(a.initAgentCommand())
	return cmd
}

func (a *app) initAgentCommand() *cobra.Command {
	var lang string
	cmd := &cobra.Command{
		Use:   "agent <id>",
		Short: "Add an agent to the fleet around the working directory",
		Long: "Add an agent to the fleet: its folder below agents, with a contract, a skill, a test and typed clients of the\n" +
			"fleet's other agents, and its entries in fleet.yaml and in the file of peers, where all else stays as it is.\n" +
			"An `agentd dev` that runs starts it.",
		Example: "  agentd init agent summarizer\n  agentd init agent triage --lang typescript",
		Args:    arguments(1, "id"),
		RunE:    a.do(func(ctx context.Context, args []string) error { return scaffold.AddAgent(ctx, &a.Env, args[0], lang) }),
	}
	cmd.Flags().StringVar(&lang, "lang", "", "python, typescript, go or bash (default: the first of them that is installed)")
	return cmd
}
