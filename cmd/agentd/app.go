package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// An app is one run of the program. Its methods make the cobra commands; the
// logic behind them is in the packages below internal/cli.
type app struct {
	cli.Env
	started bool // cobra has accepted the command line, and a command runs
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, a *app) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	code, print := cli.ExitCode(err)
	if code == cli.ExitFailed && !a.started {
		code = cli.ExitUsage // cobra has rejected the flags or arguments
	}
	switch log, logErr := a.Logger(); {
	case !print:
	case a.LogFormat == "json" && logErr == nil: // the last line is one of the log as well
		log.Error(err.Error(), "exitStatus", code)
	default:
		fmt.Fprintf(a.Stderr, "agentd: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	if code == cli.ExitUsage && a.LogFormat != "json" {
		fmt.Fprintln(a.Stderr, "Run `agentd --help`, or --help after the command, for how to use it.")
	}
	return code
}

// rootCommand returns the whole command tree. Cobra prints neither errors nor
// usage: run does, so that every error has the same form and exit status.
func (a *app) rootCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "agentd",
		Short: "Typed, validated, audited calls between the agents of a fleet",
		Long: "agentd runs beside each agent of a fleet. It validates every call against the callee's\n" +
			"JSON Schema before the broker sees it, validates every answer on return, and keeps one\n" +
			"hash-chained record of each violation.",
		SilenceUsage: true, SilenceErrors: true,
	},
		a.demoCommand(), a.runCommand(), a.brokerCommand(), a.fleetCommand(), a.requestCommand(), a.progressCommand(),
		a.awaitCommand(), a.dlqCommand(), a.permissionsCommand(), a.identityCommand(), a.approvalsCommand(),
		a.capabilitiesCommand(), a.auditCommand(), a.versionCommand(),
	)
	// VarP takes the current value as the flag's default.
	a.Format = output.Table
	flags := cmd.PersistentFlags()
	flags.StringVarP(&a.FleetDir, "fleet", "C", "", "folder of fleet.yaml, or one below it (default: $AGENTD_FLEET_ROOT, then the working directory)")
	flags.VarP(&a.Format, "output", "o", "table, json or jsonl")
	flags.StringVar(&a.LogLevel, "log-level", "", "debug, info, warn or error (default: $AGENTD_LOG_LEVEL, then info)")
	flags.StringVar(&a.LogFormat, "log-format", "text", "text or json")
	return cmd
}

// group makes cmd a command that only holds others: by itself it prints its
// help, and a word that is none of its commands is an error. Cobra would print
// the help for such a word, too, with exit status 0.
func (a *app) group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return cli.Usage("%s", text)
	}
	cmd.AddCommand(commands...)
	return cmd
}

// do adapts the function behind a command for cobra.
func (a *app) do(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		return run(cmd.Context(), args)
	}
}

// required marks flags that a command cannot do without.
func required(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
}
