package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/watch"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/serve"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/schema/contain"
)

// Run runs every member of the fleet until ctx ends, and shows what happens.
func Run(parent context.Context, env *cli.Env) error {
	if env.Format == output.JSON {
		return cli.Usage("--output: what happens has no end, and so is no single JSON value: choose jsonl or table")
	}
	// A terminal that is closed ends the fleet, as ctrl-c does: nobody watches any more.
	parent, stop := signal.NotifyContext(parent, syscall.SIGHUP)
	defer stop()
	cfg, err := serve.Config(env)
	if err != nil {
		return err
	}
	out := newScreen(env, cfg.Fleet)
	defer out.close()
	base := cfg.Logger
	cfg.Observer, cfg.Logger = out, slog.New(&logHandler{out: out, shown: shownLevels(env, base)})
	seen := stampsOf(cfg.Fleet) // before the files are put in force: a later change is one
	fleet, err := daemon.StartFleet(parent, cfg)
	if err != nil {
		return err
	}
	r := &reloader{out: out, fleet: fleet, files: cfg.Fleet, seen: seen, behind: map[string]bool{}}
	err = r.untilDone(parent, base)
	// parent has ended by now. The shutdown needs a context that is still alive.
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(parent), fleet.ShutdownTimeout())
	defer cancel()
	return errors.Join(err, fleet.Stop(stopCtx))
}

// untilDone reloads what changes until parent ends. It returns an error when an agent cannot
// go on.
func (r *reloader) untilDone(parent context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(parent)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	r.joined = func(d *daemon.Daemon) { helpers.Go(func() { serve.EndWith(ctx, d, cancel) }) }
	for _, d := range r.fleet.Daemons {
		r.joined(d)
	}
	w := watch.Watcher{
		Files: r.watched,
		Began: func() {
			r.out.ready(r.fleet)
			r.changed(ctx) // what was written during the start, when nobody watched
		},
		Changed: func() { r.changed(ctx) },
		Failed:  func(err error) { log.Warn("a folder is not watched", "error", err) },
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	if cause := context.Cause(ctx); parent.Err() == nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// shownLevels decides which records of the log are shown: warnings and errors, unless the
// command line or the environment names a level.
func shownLevels(env *cli.Env, log *slog.Logger) func(slog.Level) bool {
	if env.LogLevel == "" && env.Getenv("AGENTD_LOG_LEVEL") == "" {
		return func(l slog.Level) bool { return l >= slog.LevelWarn }
	}
	return func(l slog.Level) bool { return log.Enabled(context.Background(), l) }
}

// longestSample bounds the example of a call, which is to be one line.
const longestSample = 120

// example is a command that calls one capability of a running fleet, or "": the first one,
// preferably through another agent than its own.
func example(f *daemon.Fleet) string {
	for _, d := range f.Daemons {
		m := d.Member()
		if m.Capabilities == nil || len(m.Capabilities.Capabilities) == 0 {
			continue
		}
		as := ""
		for _, other := range f.Daemons {
			if o := other.Member(); o.ID != m.ID && (as == "" || o.ClientOnly()) {
				as = o.ID
			}
		}
		if as == "" {
			return ""
		}
		c := m.Capabilities.Capabilities[0]
		return fmt.Sprintf("agentd request --as %s %s %s%s", as, m.ID, c.Name, samplePayload(c))
	}
	return ""
}

// samplePayload is a payload that a capability takes, as an argument for a shell.
func samplePayload(c *capability.Capability) string {
	if c.Input == nil {
		return ""
	}
	value, err := contain.Sample(c.Input.Schema)
	if err != nil || len(value) > longestSample || strings.Contains(string(value), "'") {
		return " -"
	}
	return " '" + string(value) + "'"
}
