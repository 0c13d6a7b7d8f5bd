package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/watch"
	"github.com/agentd/agentd/internal/sdnotify"
)

// untilDone waits for ctx, and loads the files again whenever SIGHUP comes or, with
// watching, one of them changes. The error says which agent cannot go on.
func (a *app) untilDone(ctx context.Context, watching bool, agents ...*daemon.Daemon) error {
	systemd := sdnotify.New(a.getenv, os.Getpid())
	a.tell(systemd, sdnotify.Ready)
	defer a.tell(systemd, sdnotify.Stopping)
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)

	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	changed := make(chan struct{}, 1)
	if watching {
		helpers.Go(func() { a.watchFiles(ctx, agents, changed) })
	}
	helpers.Go(func() { systemd.Watch(ctx, func() bool { return answering(ctx, agents) }) })
	for _, d := range agents {
		if lost := d.Lost(); lost != nil {
			helpers.Go(func() {
				select {
				case <-lost:
					cancel(fmt.Errorf("agent %s: the NATS server has ended its connection for good, see its log; start it again", d.Member().ID))
				case <-ctx.Done():
				}
			})
		}
	}
	for {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		case <-hup:
		case <-changed:
		}
		a.tell(systemd, sdnotify.Reloading(sdnotify.Monotonic()))
		a.reload(agents)
		a.tell(systemd, sdnotify.Ready)
	}
}

// reload loads every agent's files again. One that fails is said, and changes
// nothing for that agent.
func (a *app) reload(agents []*daemon.Daemon) {
	var errs []error
	for _, d := range agents {
		errs = append(errs, d.Reload())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintf(a.stderr, "agentd: %s\nThe agents go on as they were.\n", err)
		return
	}
	fmt.Fprintln(a.stderr, "reloaded.")
}

// watchFiles reports changes of the agents' files, until ctx ends.
func (a *app) watchFiles(ctx context.Context, agents []*daemon.Daemon, changed chan<- struct{}) {
	w := watch.Watcher{
		Files: func() (all []string) {
			for _, d := range agents {
				all = append(all, d.Files()...)
			}
			return all
		},
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		},
		Failed: func(err error) { fmt.Fprintf(a.stderr, "agentd: %s\n", err) },
	}
	if err := w.Run(ctx); err != nil {
		fmt.Fprintf(a.stderr, "agentd: %s\nThe files are loaded again on SIGHUP only.\n", err)
	}
}

// tell tells systemd, if that has started the process.
func (a *app) tell(systemd sdnotify.Notifier, state string) {
	if err := systemd.Tell(state); err != nil {
		fmt.Fprintf(a.stderr, "agentd: %s\n", err)
	}
}

// answering reports whether every agent's control API answers. One that says that it
// is not ready is alive: a restart does not mend a broker that is away.
func answering(ctx context.Context, agents []*daemon.Daemon) bool {
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
