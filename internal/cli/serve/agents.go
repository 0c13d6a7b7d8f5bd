package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/gcpace"
	"github.com/agentd/agentd/transport/nats"
)

// prepare is Config, for agents that this process runs until it is stopped.
func prepare(env *cli.Env) (daemon.Config, error) {
	cfg, err := Config(env)
	if err == nil {
		// Before the agents start, which would collect garbage meanwhile, and not before the
		// load, which leaves a lot of it in a large fleet.
		gcpace.Relax(env.Getenv)
	}
	return cfg, err
}

// Config loads the fleet and returns the configuration to run its agents with.
func Config(env *cli.Env) (daemon.Config, error) {
	log, err := env.Logger()
	if err != nil {
		return daemon.Config{}, err
	}
	conceal(log) // before the files are read that hold secrets
	calls, err := env.LogsCalls()
	if err != nil {
		return daemon.Config{}, err
	}
	listen, err := env.Listens()
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
	traces, err := tracesOf(env, log)
	if err != nil {
		return daemon.Config{}, err
	}
	return daemon.Config{Traces: traces, Fleet: f, Paths: paths, Logger: log, LogCalls: calls, Listen: listen, Profiles: env.Profiles, Version: cli.Version(), OwnsProcess: true, Confines: env.Confines, NATS: nats.FromEnv(env.Getenv)}, nil
}

// Agent runs one member of the fleet until ctx ends. With watching, changed
// files are reloaded.
func Agent(ctx context.Context, env *cli.Env, agent string, watching bool) error {
	s, stopHUP := newService(watching)
	defer stopHUP()
	logsForMachines(env)
	cfg, err := prepare(env)
	if err != nil {
		return err
	}
	stopLogs, err := sendLogs(env, &cfg, agent)
	if err != nil {
		return err
	}
	defer stopLogs()
	cfg.AwaitBroker = true
	s.out = console{env, cfg.Logger}
	s.ready = func() {
		s.out.say(fmt.Sprintf("agent %s is ready. press ctrl-c to stop.", agent), "ready", "agent", agent)
	}
	started := false
	err = daemon.Run(ctx, cfg, agent, func(ctx context.Context, d *daemon.Daemon) error {
		started = true
		return s.untilDone(ctx, d)
	})
	if started {
		return err
	}
	return unlessStopped(ctx, err)
}

// unlessStopped returns the error of a start, nil where that has failed because the service is being
// stopped: that ends it as it should.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Fleet runs every member of the fleet until ctx ends. With watching, changed
// files are reloaded.
func Fleet(ctx context.Context, env *cli.Env, watching bool) error {
	s, stopHUP := newService(watching)
	defer stopHUP()
	logsForMachines(env)
	cfg, err := prepare(env)
	if err != nil {
		return err
	}
	stopLogs, err := sendLogs(env, &cfg, "")
	if err != nil {
		return err
	}
	defer stopLogs()
	cfg.AwaitBroker = true
	f, err := daemon.StartFleet(ctx, cfg)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	s.out = console{env, cfg.Logger}
	s.ready = func() {
		s.out.say(introduce(cfg.Fleet.Name, f)+"ready. press ctrl-c to stop.", "ready", "fleet", cfg.Fleet.Name, "agents", len(f.Daemons))
	}
	err = s.untilDone(ctx, f.Daemons...)
	// ctx has ended by now, and with it everything derived from it. The shutdown
	// needs a context that is still alive, with the fleet's own bound.
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.ShutdownTimeout())
	defer cancel()
	return errors.Join(err, f.Stop(stopCtx))
}

// introduce lists the agents of a running fleet.
func introduce(name string, f *daemon.Fleet) string {
	var text strings.Builder
	agents := "agents"
	if len(f.Daemons) == 1 {
		agents = "agent"
	}
	fmt.Fprintf(&text, "fleet: %s\nrunning %d %s:\n", name, len(f.Daemons), agents)
	for _, d := range f.Daemons {
		offers := "client-only"
		if c := d.Member().Capabilities; c != nil {
			offers = fmt.Sprintf("capabilities=%d", len(c.Capabilities))
		}
		fmt.Fprintf(&text, "  • %s  %s  socket=%s\n", d.Member().ID, offers, d.Socket())
	}
	return text.String()
}
