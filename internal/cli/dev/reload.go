package dev

import (
	"context"
	"strings"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli/serve"
)

// A reloader puts changed files in force. Its methods run in one goroutine, that of the watch.
type reloader struct {
	out    *screen
	fleet  *daemon.Fleet
	joined func(*daemon.Daemon) // called for each agent that runs
	files  *fleet.Fleet         // as last read
	seen   stamps               // of what is in force, or was refused
	behind map[string]bool      // agents whose last reload was refused: any change may mend it
}

// watched are the files of all agents, as they run and as they were last read.
func (r *reloader) watched() (all []string) {
	for _, m := range r.files.Members {
		all = append(all, filesOf(r.files, m)...)
	}
	for _, d := range r.fleet.Daemons {
		all = append(all, filesOf(r.files, d.Member())...)
	}
	return all
}

// changed reloads the agents whose files have changed, and starts those that are new.
func (r *reloader) changed(ctx context.Context) {
	now := stamps{}
	for _, path := range r.watched() {
		now.add(path)
	}
	var files []string
	stale := func(m *fleet.Member) (found bool) {
		for _, path := range filesOf(r.files, m) {
			if now.differ(r.seen, path) {
				files = append(files, path)
				found = true
			}
		}
		return found
	}
	var agents []*daemon.Daemon
	for _, d := range r.fleet.Daemons {
		if stale(d.Member()) || r.behind[d.Member().ID] {
			agents = append(agents, d)
		}
	}
	mended := false // an agent that could not be started
	for _, m := range r.files.Members {
		if _, runs := r.fleet.Daemon(m.ID); !runs && stale(m) {
			mended = true
		}
	}
	r.seen = now
	if len(agents) == 0 && !mended {
		return
	}
	r.reload(ctx, agents, files)
	r.see()
	r.start(ctx)
}

// see notes the files that a reload has brought with it.
func (r *reloader) see() {
	for _, path := range r.watched() {
		if _, known := r.seen[path]; !known {
			r.seen.add(path)
		}
	}
}

// reload reloads agents, and shows each fault once, with the agents that it concerns.
func (r *reloader) reload(ctx context.Context, agents []*daemon.Daemon, files []string) {
	var done, waiting, faults []string
	refused := map[string][]string{} // agents, by fault
	load := serve.LoadOnce(agents)
	for _, d := range agents {
		id := d.Member().ID
		err := serve.ReloadUntil(ctx, d, load)
		if ctx.Err() != nil {
			return // whoever has ended it need not read how the reload ended
		}
		if r.behind[id] = err != nil; err != nil {
			fault := strings.TrimPrefix(err.Error(), "reload: ")
			if refused[fault] == nil {
				faults = append(faults, fault)
			}
			refused[fault] = append(refused[fault], id)
			continue
		}
		done = append(done, id)
		for _, key := range d.AwaitsRestart() {
			waiting = append(waiting, id+": "+key)
		}
	}
	for _, fault := range faults {
		r.out.refused(refused[fault], files, fault)
	}
	if len(done) > 0 {
		r.out.reloaded(done, files, waiting)
	}
}

// start starts members that the files have gained.
func (r *reloader) start(ctx context.Context) {
	files, err := r.files.Reload()
	if err != nil {
		return // the agents that run have shown it
	}
	r.files = files
	r.see() // before agents start, which takes a while: a change meanwhile is one
	for _, m := range files.Members {
		if _, runs := r.fleet.Daemon(m.ID); runs || ctx.Err() != nil {
			continue
		}
		d, err := r.fleet.Join(ctx, files, m.ID)
		if err != nil {
			r.out.notStarted(m.ID, err.Error())
			continue
		}
		r.joined(d)
		r.out.joined(m.ID)
	}
}
