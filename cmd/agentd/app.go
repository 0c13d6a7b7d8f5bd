package main

import (
	"context"
	"errors"
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
	started bool  // cobra has accepted the command line, and a command runs
	misled  error // help was asked about a command that does not exist
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, a *app) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.misled
	}
	code, print := cli.ExitCode(err)
	switch {
	case code == cli.ExitFailed && !a.started:
		code = cli.ExitUsage // cobra has rejected the flags or arguments
	// Whatever the command was doing fails with its context; that is no news.
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		code, err = cli.ExitInterrupted, errors.New("interrupted")
	}
	switch log, logErr := a.Logger(); {
	case !print:
	case a.LogsJSON() && logErr == nil: // the last line is one of the log as well
		log.Error(err.Error(), "exitStatus", code)
	default:
		fmt.Fprintf(a.Stderr, "agentd: %s\n", output.PrintableText(strings.ReplaceAll(err.Error(), "\n", "\n  ")))
	}
	if code == cli.ExitUsage && !a.LogsJSON() {
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
		a.demoCommand(), a.initCommand(), a.devCommand(), a.doctorCommand(), a.topCommand(), a.runCommand(), a.brokerCommand(), a.fleetCommand(), a.requestCommand(), a.benchCommand(), a.progressCommand(),
		a.awaitCommand(), a.dlqCommand(), a.permissionsCommand(), a.identityCommand(), a.approvalsCommand(),
		a.capabilitiesCommand(), a.skillCommand(), a.sdkCommand(), a.actionCommand(), a.registryCommand(), a.mcpCommand(), a.auditCommand(), a.versionCommand(),
	)
	// Cobra prints the help of the group for an unknown command, with status 0: a script
	// that asks `agentd fleet prune --help` would take that for a yes.
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			a.misled = unknownCommand(cmd, words[0])
			return
		}
		help(cmd, args)
	})
	cmd.SetHelpCommand(a.helpCommand(cmd))
	// VarP takes the current value as the flag's default.
	a.Format = output.Table
	flags := cmd.PersistentFlags()
	flags.StringVarP(&a.FleetDir, "fleet", "C", "", "folder of fleet.yaml, or one below it (default: $AGENTD_FLEET_ROOT, then the working directory)")
	flags.VarP(&a.Format, "output", "o", "table, json or jsonl")
	flags.StringVar(&a.LogLevel, "log-level", "", "debug, info, warn or error (default: $AGENTD_LOG_LEVEL, then info)")
	flags.StringVar(&a.LogFormat, "log-format", "", "text or json (default: $AGENTD_LOG_FORMAT, then text; json for run, fleet run and broker off a terminal)")
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
		return unknownCommand(cmd, args[0])
	}
	cmd.AddCommand(commands...)
	return cmd
}

// helpCommand returns `agentd help`, which fails for an unknown command, too.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [command]…", Short: "Explain a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd, rest[0])
			}
			cmd.InitDefaultHelpFlag() // which the text mentions
			return cmd.Help()
		},
	}
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
