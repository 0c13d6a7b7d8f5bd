package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon"
)

func (a *app) fleetRunCommand() *cobra.Command {
	var watching bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run every member of the fleet in this process, until SIGINT or SIGTERM",
		Long: "Run every member of the fleet in this process.\n\n" +
			"SIGTERM or SIGINT stops it gracefully; a second one kills it. SIGHUP reads the files again,\n" +
			"and so does a change of them, unless --watch=false: capabilities, skills, peers and permissions are\n" +
			"replaced, or, when a file is at fault, nothing is.",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			cfg, err := a.daemonConfig()
			if err != nil {
				return err
			}
			f, err := daemon.StartFleet(ctx, cfg)
			if err != nil {
				return err
			}
			a.sayRunning(f, cfg.Fleet.Name)
			err = a.untilDone(ctx, watching, f.Daemons...)
			stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.ShutdownTimeout())
			defer cancel()
			return errors.Join(err, f.Stop(stopCtx))
		}),
	}
	cmd.Flags().BoolVar(&watching, "watch", true, "read the files again when they change")
	return cmd
}

func (a *app) sayRunning(f *daemon.Fleet, name string) {
	fmt.Fprintf(a.stderr, "fleet: %s\nrunning %d agents:\n", name, len(f.Daemons))
	for _, d := range f.Daemons {
		what := "client-only"
		if c := d.Member().Capabilities; c != nil {
			what = fmt.Sprintf("capabilities=%d", len(c.Capabilities))
		}
		fmt.Fprintf(a.stderr, "  • %s  %s  socket=%s\n", d.Member().ID, what, d.Socket())
	}
	fmt.Fprintln(a.stderr, "ready. press ctrl-c to stop.")
}
