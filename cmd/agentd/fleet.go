package main

import "github.com/spf13/cobra"

func (a *app) fleetCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use: "fleet", Short: "Run the fleet, and look at its files",
	})
	cmd.AddCommand(
		a.fleetRunCommand(), a.fleetValidateCommand(), a.fleetListCommand(),
		a.fleetCapabilitiesCommand(), a.fleetGraphCommand(), a.fleetPeersCommand(), a.fleetStatusCommand(),
		a.fleetNATSConfigCommand(),
	)
	return cmd
}
