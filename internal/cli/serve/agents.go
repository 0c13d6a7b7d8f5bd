package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/transport/nats"
)

// Config loads the fleet and returns the configuration to run its agents with.
func Config(env *cli.Env) (daemon.Config, error) {
	log, err := env.Logger()
	if err != nil {
		return daemon.Config{}, err
	}
	f, err := env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		return daemon.Config{}, err
	}
	paths, err := env.Paths(f)
	if err != nil {
		return daemon.Config{}, err
	}
	return daemon.Config{Fleet: f, Paths: paths, Logger: log, Version: cli.Version(), NATS: nats.FromEnv(env.Getenv)}, nil
}

// Agent runs one member of the fleet until ctx ends. With watching, changed
// files are reloaded.
func Agent(ctx context.Context, env *cli.Env, agent string, watching bool) error {
	cfg, err := Config(env)
	if err != nil {
		return err
	}
	return daemon.Run(ctx, cfg, agent, func(ctx context.Context, d *daemon.Daemon) error {
		fmt.Fprintf(env.Stderr, "agent %s is ready. press ctrl-c to stop.\n", d.Member().ID)
		return untilDone(ctx, env, watching, d)
	})
}

// Fleet runs every member of the fleet until ctx ends. With watching, changed
// files are reloaded.
func Fleet(ctx context.Context, env *cli.Env, watching bool) error {
	cfg, err := Config(env)
	if err != nil {
		return err
	}
	f, err := daemon.StartFleet(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "fleet: %s\nrunning %d agents:\n", cfg.Fleet.Name, len(f.Daemons))
	for _, d := range f.Daemons {
		offers := "client-only"
		if c := d.Member().Capabilities; c != nil {
			offers = fmt.Sprintf("capabilities=%d", len(c.Capabilities))
		}
		fmt.Fprintf(env.Stderr, "  • %s  %s  socket=%s\n", d.Member().ID, offers, d.Socket())
	}
	fmt.Fprintln(env.Stderr, "ready. press ctrl-c to stop.")
	err = untilDone(ctx, env, watching, f.Daemons...)
	// ctx has ended by now, and with it everything derived from it. The shutdown
	// needs a context that is still alive, with the fleet's own bound.
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.ShutdownTimeout())
	defer cancel()
	return errors.Join(err, f.Stop(stopCtx))
}
