package top

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

const (
	// DefaultInterval is the time between two views.
	DefaultInterval = 2 * time.Second
	// shortestInterval and longestInterval bound it.
	shortestInterval = 100 * time.Millisecond
	longestInterval  = time.Hour
)

// A Request is one `agentd top`.
type Request struct {
	// Agents are those to show; none means the members of the fleet.
	Agents []string
	// Interval is the time between two views; 0 means DefaultInterval, and off a terminal one view,
	// but of the format jsonl.
	Interval time.Duration
	// Once ends after one view.
	Once bool
	// Sort is the name of a [Sort].
	Sort string
}

// Run shows views until ctx ends, until the user has had enough, or once. The error is that of ctx
// for a view that only an interrupt can end.
func Run(ctx context.Context, env *cli.Env, r Request) error {
	order, err := parseSort(r.Sort)
	if err != nil {
		return err
	}
	in, out, onTerminal := terminal(env)
	live := onTerminal && env.Format == output.Table
	once := r.Once || r.Interval == 0 && !live && env.Format != output.JSONL
	if r.Interval == 0 {
		r.Interval = DefaultInterval
	}
	if r.Interval < shortestInterval || r.Interval > longestInterval {
		return cli.Usage("--interval: must be from %s to %s", shortestInterval, longestInterval)
	}
	w, err := newWatcher(ctx, env, r.Agents)
	if err != nil {
		return err
	}
	defer w.close()
	if live && !once {
		return (&screen{in: in, out: out, watcher: w, interval: r.Interval, look: look{order: order, colors: env.Colors()}}).run(ctx)
	}
	return follow(ctx, env, w, r.Interval, once, order)
}

// terminal returns the terminal that a user looks at and types into, if there is one.
func terminal(env *cli.Env) (in, out *os.File, ok bool) {
	in, isFile := env.Stdin.(*os.File)
	out, outIsFile := env.Stdout.(*os.File)
	ok = isFile && outIsFile && env.Getenv("TERM") != "dumb" && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
	return in, out, ok
}

// follow writes a view for each interval, the first one after the first.
func follow(ctx context.Context, env *cli.Env, w *watcher, interval time.Duration, once bool, order Sort) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	w.take(ctx) // what the first view is compared with
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		s := w.take(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := write(env, s, once, order); err != nil {
			return err
		}
		switch {
		case once && s.silent():
			return errors.New("none of the agents answers here: start them with `agentd fleet run` or `agentd run`")
		case once:
			return nil
		}
	}
}

// write writes one view.
func write(env *cli.Env, s *snapshot, once bool, order Sort) error {
	s.sort(order)
	switch {
	case env.Format == output.Table:
		text := look{order: order, colors: env.Colors()}.plain(s)
		if !once {
			text += "\n"
		}
		_, err := io.WriteString(env.Stdout, text)
		return err
	case once:
		return env.WriteJSON(s)
	default:
		return output.WriteJSON(env.Stdout, output.JSONL, s)
	}
}
