package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport/nats"
)

func (a *app) runCommand() *cobra.Command {
	var agent string
	var watching bool
	cmd := &cobra.Command{
		Use:   "run --agent <id>",
		Short: "Run one member of the fleet, until SIGINT or SIGTERM",
		Long: "Run one member of the fleet in this process.\n\n" +
			"SIGTERM stops it gracefully: no more calls are taken, those that run are finished within\n" +
			"the agent's shutdownTimeoutMs, and the audit log is closed. A second signal kills it.\n" +
			"SIGHUP reads the files again, and so does a change of them, unless --watch=false: capabilities,\n" +
			"skills, peers and permissions are replaced, or, when a file is at fault, nothing is.\n\n" +
			"As a systemd service of Type=notify or notify-reload it says when it is ready, and with WatchdogSec\n" +
			"that it is alive. The exit status is 1 when the NATS server ends its connection for good.",
		Example: "  agentd run --agent pr-reviewer",
		Args:    cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			cfg, err := a.daemonConfig()
			if err != nil {
				return err
			}
			return daemon.Run(ctx, cfg, agent, func(ctx context.Context, d *daemon.Daemon) error {
				fmt.Fprintf(a.stderr, "agent %s is ready. press ctrl-c to stop.\n", d.Member().ID)
				return a.untilDone(ctx, watching, d)
			})
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "id of the member to run (required)")
	cmd.Flags().BoolVar(&watching, "watch", true, "read the files again when they change")
	_ = cmd.MarkFlagRequired("agent") // fails only for a flag that does not exist
	return cmd
}

// daemonConfig loads the fleet for running it.
func (a *app) daemonConfig() (daemon.Config, error) {
	log, err := a.logger()
	if err != nil {
		return daemon.Config{}, err
	}
	f, err := a.loadFleet(fleet.LoadOptions{})
	if err != nil {
		return daemon.Config{}, err
	}
	paths, err := a.paths(f)
	if err != nil {
		return daemon.Config{}, err
	}
	return daemon.Config{Fleet: f, Paths: paths, Logger: log, Version: version(), NATS: nats.FromEnv(a.getenv)}, nil
}
