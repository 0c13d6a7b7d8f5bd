package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/daemon/internal/monitoring"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport/memory"
)

// startsAtOnce is how many members start at one time. A start reads and writes the disk, and runs
// the programs of skills; it is over in a fraction of a second, unless those take longer.
const startsAtOnce = 8

// A Fleet is every member of a fleet, running in this process.
type Fleet struct {
	// Daemons are the running agents, in declared order.
	Daemons []*Daemon
	// Bus carries the calls between them.
	Bus *memory.Bus

	cfg        Config // of those that start later
	monitoring *monitoring.Server
}

// StartFleet starts every member, on one memory bus. An error leaves none running: it is that of the
// first member that could not start.
//
// The members start side by side, a few at a time; those that wait for their broker keep no other
// one from starting. A call to a member that has not started yet fails at once with NoResponders,
// which callers may retry. Probes and metrics are served meanwhile.
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
	cfg.Listen, cfg.shared = "", true
	f := &Fleet{Bus: cfg.Bus, cfg: cfg}
	for _, m := range cfg.Fleet.Members {
		d, err := newDaemon(cfg, m.ID)
		if err != nil {
			return nil, errors.Join(err, f.stopAtOnce(ctx))
		}
		f.Daemons = append(f.Daemons, d)
	}
	if listen != "" {
		if err := f.monitor(ctx, listen); err != nil {
			return nil, errors.Join(err, f.stopAtOnce(ctx))
		}
	}
	if err := f.startMembers(ctx); err != nil {
		return nil, errors.Join(err, f.stopAtOnce(ctx))
	}
	return f, nil
}

// startMembers starts the members side by side. The first that fails ends the starts of the others.
func (f *Fleet) startMembers(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	places := make(chan struct{}, startsAtOnce)
	var all sync.WaitGroup
	var failed error
	var once sync.Once
	for _, d := range f.Daemons {
		d.turn.places = places
		all.Go(func() {
			if err := d.begin(ctx); err != nil {
				once.Do(func() {
					failed = err
					cancel() // what the others say from here on is a consequence
				})
			}
		})
	}
	all.Wait()
	return failed
}

// stopAtOnce stops what has started, of a fleet that does not. ctx may have ended, which may be why.
// The members have hardly any calls to finish. Why a member's start failed has been said.
func (f *Fleet) stopAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	f.Daemons = slices.DeleteFunc(f.Daemons, func(d *Daemon) bool { return d.failed })
	return f.Stop(ctx)
}

// A turn is the place of a member among those that start at one time. It belongs to the goroutine of
// the start. The zero value is that of an agent that starts alone, which needs none.
type turn struct {
	places chan struct{}
	held   bool
}

// take waits for a place until ctx ends.
func (t *turn) take(ctx context.Context) error {
	if t.places == nil {
		return nil
	}
	select {
	case t.places <- struct{}{}:
		t.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// giveBack lets another member start, if this one has a place.
func (t *turn) giveBack() {
	if t.held {
		<-t.places
		t.held = false
	}
}

// monitor serves the probes and metrics of all members at one address.
func (f *Fleet) monitor(ctx context.Context, address string) error {
	process := monitoring.Process{LogsLost: f.cfg.LogsLost}
	for _, d := range f.Daemons {
		process.Agents = append(process.Agents, d.monitored())
	}
	var err error
	f.monitoring, err = monitoring.Listen(ctx, address, monitoring.Settings{Profiles: f.cfg.Profiles}, f.cfg.Logger, process)
	if err != nil {
		return err
	}
	for _, d := range f.Daemons {
		d.sharedMonitoring = f.monitoring
	}
	f.cfg.Logger.Info("probes and metrics are served", "url", f.monitoring.URL())
	return nil
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
