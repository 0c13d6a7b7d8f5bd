package top

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
)

// askTimeout bounds how long an agent may take to answer. Those that hang must not hold up the view
// of the others.
const askTimeout = 3 * time.Second

// A watcher asks agents what they do, and compares that with what they did before.
type watcher struct {
	fleet   string
	sources []*source
}

// A source is one agent.
type source struct {
	id     string
	client *control.Client
	named  bool      // on the command line
	seen   bool      // it has answered
	last   *reading  // its last answer, nil for one that has not answered since it went away
	away   time.Time // since when; zero while it answers
}

// A reading is what an agent has said of itself.
type reading struct {
	at       time.Time
	activity control.Activity
}

// newWatcher returns one of the named agents, or of all members of the fleet. Agents that run and
// that fleet.yaml no longer lists are among them.
func newWatcher(ctx context.Context, env *cli.Env, agents []string) (*watcher, error) {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return nil, err
	}
	running, err := paths.Running(ctx)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, m := range f.Members {
		known = append(known, m.ID)
	}
	for _, id := range running {
		if !slices.Contains(known, id) {
			known = append(known, id)
		}
	}
	ids := known
	if len(agents) > 0 {
		ids = nil
		for _, agent := range agents {
			id := cli.ID(agent)
			if !slices.Contains(known, id) {
				return nil, cli.Usage("--agent: the fleet %s has no agent %q", f.Name, agent)
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	w := &watcher{fleet: f.Name}
	for _, id := range ids {
		w.sources = append(w.sources, &source{id: id, client: control.NewClient(paths.Socket(id)), named: len(agents) > 0})
	}
	return w, nil
}

func (w *watcher) close() {
	for _, s := range w.sources {
		s.client.Close()
	}
}

// take asks all agents at the same time.
func (w *watcher) take(ctx context.Context) *snapshot {
	s := &snapshot{Fleet: w.fleet, Agents: make([]agent, len(w.sources))}
	var asking sync.WaitGroup
	for i, source := range w.sources {
		asking.Go(func() { s.Agents[i] = source.ask(ctx) })
	}
	asking.Wait()
	s.Time = time.Now()
	return s
}

// ask asks the agent.
func (s *source) ask(ctx context.Context) agent {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	activity, err := s.client.Activity(ctx)
	now := time.Now()
	if err != nil {
		return s.unanswered(err, now)
	}
	before := s.last
	s.last, s.seen, s.away = &reading{now, activity}, true, time.Time{}
	// What a process that has ended had counted says nothing of the next one.
	if before != nil && (before.activity.Status.PID != activity.Status.PID || !before.activity.Status.Started.Equal(activity.Status.Started)) {
		before = nil
	}
	return newAgent(s.id, before, s.last)
}

// unanswered is what is shown of an agent that does not answer.
func (s *source) unanswered(err error, now time.Time) agent {
	s.last = nil
	if s.away.IsZero() {
		s.away = now
	}
	a := agent{Agent: s.id, State: stateUnreachable, Error: err.Error(), Away: s.away}
	var down *control.NotRunningError
	var refused *control.RefusedError
	switch {
	case errors.As(err, &down) && (errors.Is(down.Err, fs.ErrNotExist) || errors.Is(down.Err, syscall.ECONNREFUSED)):
		a.State, a.Error = stateDown, "does not run on this host"
		a.elsewhere = !s.seen && !s.named
	case errors.As(err, &down): // such as a socket of another user
		a.Error = down.Err.Error()
	case errors.As(err, &refused) && refused.HTTPStatus == http.StatusNotFound:
		a.Error = "is of an older version, which does not say what it does: restart it with this one"
	case errors.Is(err, context.DeadlineExceeded):
		a.Error = "has not answered for " + askTimeout.String()
	}
	return a
}
