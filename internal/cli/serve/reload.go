package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/watch"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/sdnotify"
)

// A service is what a command does while its agents run.
type service struct {
	out      console
	watching bool      // reload the files when they change
	loading  time.Time // when the command began to read them
	ready    func()    // says that the agents are ready
	// hup receives SIGHUP, from before the agents start: a start may wait long for the broker, and
	// the signal would end the process.
	hup chan os.Signal
}

// newService returns a service that takes SIGHUP from now on, until stop is called.
func newService(watching bool) (_ service, stop func()) {
	// One slot is enough: signals that arrive during the start or a reload collapse into one
	// more reload, which reads the files as they are then.
	s := service{watching: watching, loading: time.Now(), hup: make(chan os.Signal, 1)}
	signal.Notify(s.hup, syscall.SIGHUP)
	return s, func() { signal.Stop(s.hup) }
}

// untilDone waits for ctx. Meanwhile it reloads the agents' files on SIGHUP and,
// with watching, when one of them changes, and keeps systemd informed. The agents are
// ready once a change of a file would be noticed. It returns an error when an agent has
// lost its broker for good, or shares its subjects with another fleet.
func (s service) untilDone(ctx context.Context, agents ...*daemon.Daemon) error {
	out := s.out
	systemd := sdnotify.New(out.env.Getenv, os.Getpid())
	// Deferred calls run in reverse: cancel ends the helpers, Wait joins them, and
	// only then does systemd hear that the agents are stopping.
	defer notify(out, systemd, sdnotify.Stopping)
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)

	changed := make(chan struct{}, 1)
	if s.watching {
		begun := make(chan struct{})
		helpers.Go(func() { watchFiles(ctx, out, agents, changed, begun) })
		<-begun
		if changedSince(s.loading, agents) {
			select {
			case changed <- struct{}{}:
			default: // the watch has seen one already
			}
		}
	}
	s.ready()
	notify(out, systemd, sdnotify.Ready)
	helpers.Go(releaseMemory)
	// Watch returns at once when the unit has no watchdog.
	helpers.Go(func() { systemd.Watch(ctx, func() bool { return alive(ctx, agents) }) })
	for _, d := range agents {
		helpers.Go(func() { EndWith(ctx, d, cancel) })
	}
	return reloadUntilDone(ctx, s.hup, changed, func() {
		// systemd wants the time of the reload from the monotonic clock, to tell
		// this reload from an earlier one (sd_notify(3), MONOTONIC_USEC).
		notify(out, systemd, sdnotify.Reloading(sdnotify.Monotonic()))
		reload(ctx, out, agents)
		releaseMemory()
		notify(out, systemd, sdnotify.Ready)
	})
}

// EndWith ends the service with an agent that can never be reached again, or that must
// not go on.
func EndWith(ctx context.Context, d *daemon.Daemon, cancel context.CancelCauseFunc) {
	select {
	case err := <-d.Conflict():
		cancel(fmt.Errorf("agent %s: %w", d.Member().ID, err))
	case <-d.Lost():
		cancel(fmt.Errorf("agent %s: the NATS server has closed its connection for good; see the server's log, then start the agent again", d.Member().ID))
	case <-ctx.Done():
	}
}

// reloadUntilDone reloads for each signal and each change until ctx ends.
func reloadUntilDone(ctx context.Context, hup <-chan os.Signal, changed <-chan struct{}, reload func()) error {
	for {
		select {
		case <-ctx.Done():
			// SIGINT and SIGTERM cancel the parent, which is the normal end; any
			// other cause is that of an agent that cannot go on, and the command fails
			// with it.
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		case <-hup:
		case <-changed:
		}
		reload()
	}
}

// LoadOnce returns what loads the files of agents of one fleet, once for all of them.
func LoadOnce(agents []*daemon.Daemon) func() (*fleet.Fleet, error) {
	return sync.OnceValues(func() (*fleet.Fleet, error) { return agents[0].LoadFiles() })
}

// reloadGrace is how long a reload may go on once its agent has stopped.
const reloadGrace = 2 * time.Second

// errReloadLeft means that a reload was left behind: its agent has stopped, and it goes on.
var errReloadLeft = errors.New("the reload has not ended with its agent")

// ReloadUntil reloads an agent from the files that load returns. When ctx ends, it stops the
// agent instead: a reload waits for workers to start, which may take as long as they like. A
// reload that does not end with its agent, as one that reads a file of a server that is away, is
// left behind: nothing can end it but the process, which is about to.
func ReloadUntil(ctx context.Context, d *daemon.Daemon, load func() (*fleet.Fleet, error)) error {
	ended := make(chan error, 1)
	go func() { ended <- d.ReloadFrom(load) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Member().Agent.Limits.ShutdownTimeout)
	defer cancel()
	_ = d.Stop(stopping) // the fleet's Stop returns the same error
	select {
	case err := <-ended:
		return err
	case <-time.After(reloadGrace):
		return errReloadLeft
	}
}

// reload reloads the files of every agent. An agent whose files are faulty goes on with
// those that it has, also where others can load theirs. A fault is reported once, with
// the agents that it concerns: most files are those of all of them.
func reload(ctx context.Context, out console, agents []*daemon.Daemon) {
	var faults []string
	stayed := make(map[string][]string) // agents, by fault
	var waiting []string
	load := LoadOnce(agents)
	for _, d := range agents {
		id := d.Member().ID
		err := ReloadUntil(ctx, d, load)
		if ctx.Err() != nil {
			return // who has ended it need not read how the reload ended
		}
		if err != nil {
			fault := err.Error()
			if stayed[fault] == nil {
				faults = append(faults, fault)
			}
			stayed[fault] = append(stayed[fault], id)
			continue
		}
		for _, key := range d.AwaitsRestart() {
			waiting = append(waiting, id+": "+key)
		}
	}
	reloaded := len(agents)
	for _, fault := range faults {
		ids := stayed[fault]
		reloaded -= len(ids)
		out.fault(fmt.Sprintf("agentd: %s\nNot reloaded: %s. The old files stay in force there.", fault, strings.Join(ids, ", ")),
			"not reloaded: the agents go on with the files that they have", "agents", ids, "error", fault)
	}
	switch {
	case reloaded == 0:
	case len(waiting) > 0:
		out.say("reloaded, but for what takes a restart: "+strings.Join(waiting, ", "), "reloaded", "waiting", waiting)
	default:
		out.say("reloaded.", "reloaded")
	}
}

// watchFiles sends on changed when a file of the agents changes, until ctx ends. It
// closes begun once it notices changes, or has found that it cannot.
func watchFiles(ctx context.Context, out console, agents []*daemon.Daemon, changed chan<- struct{}, begun chan<- struct{}) {
	begin := sync.OnceFunc(func() { close(begun) })
	defer begin()
	w := watch.Watcher{
		Files: func() (all []string) {
			for _, d := range agents {
				all = append(all, d.Files()...)
			}
			return all
		},
		Began: begin,
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // the pending reload will see this change, too
			}
		},
		Failed: func(err error) { out.fault("agentd: "+err.Error(), "a folder is not watched", "error", err) },
	}
	if err := w.Run(ctx); err != nil {
		out.fault(fmt.Sprintf("agentd: %s\nFiles are reloaded on SIGHUP only.", err), "files are reloaded on SIGHUP only", "error", err)
	}
}

// changedSince reports whether a file was written while the agents were starting, when
// nobody watched.
func changedSince(t time.Time, agents []*daemon.Daemon) bool {
	for _, d := range agents {
		for _, file := range d.Files() {
			if info, err := os.Stat(file); err == nil && info.ModTime().After(t) {
				return true
			}
		}
	}
	return false
}

// notify informs systemd, if it started the process. A failure is no reason to
// stop the agents.
func notify(out console, systemd sdnotify.Notifier, state string) {
	if err := systemd.Notify(state); err != nil {
		out.fault("agentd: "+err.Error(), "systemd was not notified", "error", err)
	}
}

// alive reports whether the control API of every agent answers. One that answers
// that it is not ready is alive: restarting it would not bring its broker back.
func alive(ctx context.Context, agents []*daemon.Daemon) bool {
	// The bound covers all agents together. It keeps a socket that accepts but
	// never answers from delaying the watchdog's verdict without end.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, d := range agents {
		client := control.NewClient(d.Socket())
		err := client.Ready(ctx)
		client.Close()
		if refused := new(control.RefusedError); err != nil && !errors.As(err, &refused) {
			return false
		}
	}
	return true
}
