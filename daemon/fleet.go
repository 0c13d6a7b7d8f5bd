package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentd/agentd/daemon/internal/monitoring"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport/memory"
)

// A Fleet is every member of a fleet, running in this process.
type Fleet struct {
	// Daemons are the running agents, in declared order.
	Daemons []*Daemon
	// Bus carries the calls between them.
	Bus *memory.Bus

	cfg        Config // of those that start later
	monitoring *monitoring.Server
}

// StartFleet starts every member, on one memory bus. An error leaves none running.
//
// The members start one after another, in declared order. A call to a member that has
// not started yet fails at once with NoResponders, which callers may retry.
func StartFleet(ctx context.Context, cfg Config) (*Fleet, error) {
	if len(cfg.Fleet.Members) == 0 {
		return nil, fmt.Errorf("fleet %s declares no agents", cfg.Fleet.Name)
	}
	if cfg.Bus == nil {
		cfg.Bus = memory.NewBus(memory.Options{})
	}
	cfg.ownProcess()
	// There is no file that could give it a certificate or a token, so that nobody else may reach it.
	listen := cfg.Listen
	if listen != "" && !fleet.Loopback(listen) {
		return nil, fmt.Errorf("monitoring: %s is not a loopback address: for others give each member monitoring.listen in its agent.yaml", listen)
	}
	cfg.Listen = ""
	f := &Fleet{Bus: cfg.Bus, cfg: cfg}
	for _, m := range cfg.Fleet.Members {
		d, err := Start(ctx, cfg, m.ID)
		if err != nil {
			// ctx may have ended, which may be why the start failed. The members
			// that run have hardly any calls to finish.
			stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			return nil, errors.Join(err, f.Stop(stopCtx))
		}
		f.Daemons = append(f.Daemons, d)
	}
	if listen != "" {
		if err := f.monitor(ctx, listen); err != nil {
			stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			return nil, errors.Join(err, f.Stop(stopCtx))
		}
	}
	return f, nil
}

// monitor serves the probes and metrics of all members at one address.
func (f *Fleet) monitor(ctx context.Context, address string) error {
	agents := make([]monitoring.Agent, len(f.Daemons))
	for i, d := range f.Daemons {
		agents[i] = d.monitored()
	}
	var err error
	f.monitoring, err = monitoring.Listen(ctx, address, monitoring.Settings{Profiles: f.cfg.Profiles}, f.cfg.Logger, agents...)
	if err == nil {
		f.cfg.Logger.Info("probes and metrics are served", "url", f.monitoring.URL())
	}
	return err
}

// Join starts a member that the fleet's files have gained since the start. It is not safe for
// concurrent use.
func (f *Fleet) Join(ctx context.Context, files *fleet.Fleet, id string) (*Daemon, error) {
	cfg := f.cfg
	cfg.Fleet = files
	d, err := Start(ctx, cfg, id)
	if err != nil {
		return nil, err
	}
	f.Daemons = append(f.Daemons, d)
	return d, nil
}

// Daemon returns the running agent with an id.
func (f *Fleet) Daemon(id string) (*Daemon, bool) {
	for _, d := range f.Daemons {
		if d.Member().ID == id {
			return d, true
		}
	}
	return nil, false
}

// ShutdownTimeout is the longest time that any member needs to finish its calls.
func (f *Fleet) ShutdownTimeout() time.Duration {
	longest := time.Second
	for _, d := range f.Daemons {
		longest = max(longest, d.Member().Agent.Limits.ShutdownTimeout)
	}
	return longest
}

// Stop stops all members at the same time, see [Daemon.Stop]: one after another, their
// shutdown timeouts would add up, and those that are left would call ones that are gone.
func (f *Fleet) Stop(ctx context.Context) error {
	errs := make([]error, len(f.Daemons))
	var all sync.WaitGroup
	for i, d := range f.Daemons {
		all.Go(func() { errs[i] = d.Stop(ctx) })
	}
	all.Wait()
	return errors.Join(append(errs, f.monitoring.Close(ctx))...)
}
