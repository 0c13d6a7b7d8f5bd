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
	}, a.skillCheckCommand(), a.skillTestHostCommand())
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

// skillTestHostCommand returns `agentd skill test-host`.
func (a *app) skillTestHostCommand() *cobra.Command {
	var h skill.TestHost
	cmd := &cobra.Command{
		Use:   "test-host [flags]",
		Short: "Judge payloads for the tests of skills, as agents would",
		Long: "Read questions from standard input, one JSON object a line, and answer each with a verdict on standard output:\n" +
			"whether a payload fits the schema of a capability, and what the caller would get if it does not. The kits run\n" +
			"it for tests of skills without a fleet; docs/kits.md specifies the lines.",
		Example: "  agentd skill test-host --capabilities agents/reviewer/capabilities.yaml --peer agents/librarian/capabilities.yaml",
		Args:    cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			return h.Execute(ctx, &a.Env)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&h.Capabilities, "capabilities", "", "capabilities.yaml of the agent whose skill is tested (required)")
	f.StringArrayVar(&h.Peers, "peer", nil, "capabilities.yaml of a peer that the test plays; may be given several times")
	required(cmd, "capabilities")
	return cmd
}
