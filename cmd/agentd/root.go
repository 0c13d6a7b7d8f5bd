package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/output"
)

func (a *app) rootCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "agentd",
		Short: "Typed, validated, audited calls between the agents of a fleet",
		Long: "agentd runs beside each agent of a fleet. It validates every call against the callee's\n" +
			"JSON Schema before the broker sees it, validates every answer on return, and keeps one\n" +
			"hash-chained record of each violation.",
		SilenceUsage: true, SilenceErrors: true,
	})
	a.output = output.Table
	flags := cmd.PersistentFlags()
	flags.StringVarP(&a.fleetDir, "fleet", "C", "", "folder of fleet.yaml, or one below it (default: $AGENTD_FLEET_ROOT, then the working directory)")
	flags.VarP(&a.output, "output", "o", "table, json or jsonl")
	flags.StringVar(&a.logLevel, "log-level", "", "debug, info, warn or error (default: $AGENTD_LOG_LEVEL, then info)")
	flags.StringVar(&a.logFormat, "log-format", "text", "text or json")
	cmd.AddCommand(
		a.demoCommand(), a.runCommand(), a.brokerCommand(), a.fleetCommand(), a.requestCommand(), a.progressCommand(), a.awaitCommand(), a.dlqCommand(), a.permissionsCommand(), a.identityCommand(), a.approvalsCommand(),
		a.capabilitiesCommand(), a.auditCommand(), a.versionCommand(),
	)
	return cmd
}

// group makes cmd a command that only holds others: alone it prints its help,
// and a word that is none of its commands is an error.
func (a *app) group(cmd *cobra.Command) *cobra.Command {
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
		return usage("%s", text)
	}
	return cmd
}
