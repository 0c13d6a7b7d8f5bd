package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/skill"
)

// skillCommand returns `agentd skill`.
func (a *app) skillCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "skill",
		Short: "Work on the programs behind capabilities",
	}, a.skillCheckCommand())
}

// skillCheckCommand returns `agentd skill check`.
func (a *app) skillCheckCommand() *cobra.Command {
	var c skill.Check
	cmd := &cobra.Command{
		Use:   "check [flags] -- <command> [argument]…",
		Short: "Check whether a program is a worker, as the worker protocol says",
		Long: "Start a program as a worker, run it through all of the protocol between agentd and workers, and say what\n" +
			"it does wrong. docs/worker-protocol.md specifies the protocol, and the capabilities with which a kit is\n" +
			"checked: what needs one that the program does not serve is skipped.\n\n" +
			"The program runs in the working directory, with the environment of this command, and without a sandbox.\n\n" +
			"The exit status is 3 if a check fails.",
		Example: "  agentd skill check -- python3 worker.py\n" +
			"  agentd skill check --capabilities agents/librarian/capabilities.yaml --call 'search={\"query\":\"x\"}' -- ./librarian",
		Args: cobra.MinimumNArgs(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			c.Command = args
			return skill.Execute(ctx, &a.Env, c)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&c.Capabilities, "capabilities", "", "capabilities.yaml whose capabilities the worker is offered, and must serve")
	f.StringArrayVar(&c.Calls, "call", nil, "a call that must succeed, as <capability>=<payload>; may be given several times")
	f.DurationVar(&c.StartTimeout, "start-timeout", 30*time.Second, "how long the worker may take to start")
	f.DurationVar(&c.Timeout, "timeout", 10*time.Second, "how long it may take to answer")
	f.DurationVar(&c.Grace, "grace", 2*time.Second, "how long it may take to end a cancelled call, and itself")
	return cmd
}
