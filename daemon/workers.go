package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/worker"
)

// A workerSkill is a skill that stays. A call that comes to the one from before a reload is
// served by the one that is in force.
type workerSkill struct {
	workers *workers
	name    string
	process *skill.Process
	pool    *worker.Pool
	eager   bool
	start   time.Duration // how long its instances may take
}

// Handle implements [rpc.Handler].
func (s *workerSkill) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	for tried := (*worker.Pool)(nil); ; {
		now := s.workers.find(s.name)
		if now == nil || now.pool == tried {
			return nil, &rpc.SkillError{Message: "the skill's worker takes no more calls", Retryable: true}
		}
		answer, err := now.pool.Handle(ctx, inv)
		if !errors.Is(err, worker.ErrRetired) {
			return answer, err
		}
		tried = now.pool
	}
}

// workers are the skills of an agent that stay.
type workers struct {
	mu      sync.Mutex
	current map[string]*workerSkill   // by name; guarded by mu
	open    map[*worker.Pool]struct{} // with those that finish their calls; guarded by mu
	closed  bool                      // none begins any more; guarded by mu
	closing sync.WaitGroup            // the retired ones
	judging sync.Mutex                // held while the board gets what is known of a worker; taken before mu
	board   *health.Board
}

// worker returns a skill that stays. Nothing runs yet.
func (d *Daemon) worker(m *fleet.Member, s fleet.Skill, p *skill.Process, url string) (rpc.Handler, error) {
	offered := capabilitiesOf(m, s)
	if err := samePermissions(s, p, offered); err != nil {
		return nil, err
	}
	out := &workerSkill{workers: &d.workers, name: s.Name, process: p, eager: s.Worker.Eager, start: s.Worker.StartTimeout}
	staying := 0
	if s.Worker.Eager {
		staying = 1
	}
	var err error
	out.pool, err = worker.New(worker.Config{
		Name: s.Name, Program: p, Instances: s.Worker.Instances, Concurrency: s.Worker.Concurrency,
		MaxCalls: s.Worker.MaxCalls, MaxAge: s.Worker.MaxAge, MaxMemoryBytes: s.Worker.MaxMemoryBytes, StartTimeout: s.Worker.StartTimeout,
		IdleTimeout: s.Worker.IdleTimeout, Staying: staying,
		Capabilities: workerCapabilities(offered), Agent: string(m.Address), FleetRoot: d.cfg.Fleet.Root, URL: url,
		MaxPayloadBytes: m.Agent.Limits.MaxPayloadBytes, Caller: d.client, ModelUsage: d.modelUsed, Logger: d.log,
		Changed: func(error) { d.workers.judge(out) },
	})
	return out, err
}

// capabilitiesOf are those that a skill serves.
func capabilitiesOf(m *fleet.Member, s fleet.Skill) (offered []*capability.Capability) {
	if m.Capabilities == nil {
		return nil
	}
	for _, c := range m.Capabilities.Capabilities {
		if c.Skill == s.Name {
			offered = append(offered, c)
		}
	}
	return offered
}

// workerCapabilities are what a worker learns of the capabilities that it serves.
func workerCapabilities(offered []*capability.Capability) []worker.Capability {
	all := make([]worker.Capability, len(offered))
	for i, c := range offered {
		all[i] = worker.Capability{
			Name: c.Name, Description: c.Description, TimeoutMs: c.Timeout.Milliseconds(), Progress: c.Progress, Idempotent: c.Idempotent,
		}
		if c.Input != nil {
			all[i].InputSchema = c.Input.Source
		}
		if c.Output != nil {
			all[i].OutputSchema = c.Output.Source
		}
	}
	return all
}

// samePermissions refuses a worker whose capabilities declare permissions that differ: a
// process is confined once, and would serve the one with what was given to the other.
func samePermissions(s fleet.Skill, p *skill.Process, offered []*capability.Capability) error {
	if p.Sandbox == nil || p.Sandbox.Policy.Off {
		return nil
	}
	of := func(c *capability.Capability) any {
		if policy, ok := p.Sandbox.ByCapability[c.Name]; ok {
			return policy
		}
		return p.Sandbox.Policy
	}
	for _, c := range offered[1:] {
		if !reflect.DeepEqual(of(offered[0]), of(c)) {
			return &strictyaml.Error{Faults: []strictyaml.Fault{s.Position.Fault(
				fmt.Sprintf("the worker %q serves %s and %s, whose permissions differ: a process that serves both would have for the one what was given to the other", s.Name, offered[0].Name, c.Name),
				"give each of them a worker of its own, or the same permissions")}}
		}
	}
	return nil
}

// workersOf are those among handlers.
func workersOf(handlers map[string]rpc.Handler) (all []*workerSkill) {
	for _, h := range handlers {
		if s, ok := h.(toolSkill); ok {
			h = s.skill
		}
		if w, ok := h.(*workerSkill); ok {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b *workerSkill) int { return strings.Compare(a.name, b.name) })
	return all
}

// find returns the worker of a name that is in force, or nil.
func (w *workers) find(name string) *workerSkill {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current[name]
}

// keep notes a pool, so that close ends it. After close it is retired instead.
func (w *workers) keep(p *worker.Pool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		p.Retire()
		return
	}
	if w.open == nil {
		w.open = map[*worker.Pool]struct{}{}
	}
	w.open[p] = struct{}{}
}

// forget undoes keep, of a pool that has been closed.
func (w *workers) forget(p *worker.Pool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, p)
}

// prepare starts the workers of a reload as far as they are to serve at once: those that are
// eager, and those in whose place another one serves. All start at the same time. The error
// names one that does not start. It ends with close.
func (w *workers) prepare(handlers map[string]rpc.Handler) error {
	var awaited []*workerSkill
	for _, next := range workersOf(handlers) {
		before := w.find(next.name)
		if next.eager || before != nil && before.pool.Status().Begun {
			w.keep(next.pool)
			next.pool.Begin()
			awaited = append(awaited, next)
		}
	}
	for _, next := range awaited {
		ctx, cancel := context.WithTimeout(context.Background(), next.start+time.Second)
		err := next.pool.Serving(ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("the worker %s does not start: %w", next.name, err)
		}
	}
	return nil
}

// abandon ends the workers of a reload that is refused.
func (w *workers) abandon(handlers map[string]rpc.Handler) error {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	var errs []error
	for _, next := range workersOf(handlers) {
		errs = append(errs, next.pool.Close(ctx))
		w.forget(next.pool)
	}
	return errors.Join(errs...)
}

// use puts workers in force. Those from before finish their calls, and end.
func (w *workers) use(handlers map[string]rpc.Handler) {
	inForce := map[string]*workerSkill{}
	for _, next := range workersOf(handlers) {
		w.keep(next.pool)
		inForce[next.name] = next
	}
	w.mu.Lock()
	before := w.current
	w.current = inForce
	for _, old := range before {
		if w.closed {
			break // close ends them
		}
		w.closing.Go(func() {
			_ = old.pool.Close(context.Background()) // close ends the wait
			w.forget(old.pool)
		})
	}
	w.mu.Unlock()
	for _, old := range before {
		old.pool.Retire()
		if inForce[old.name] == nil {
			w.judging.Lock()
			w.board.End(health.Worker, old.name)
			w.judging.Unlock()
		}
	}
	// What has become of them before they were in force was not for the board.
	for _, next := range inForce {
		w.judge(next)
	}
}

// close ends all workers, those of a reload that still runs, too. Those that still run when
// ctx ends are killed.
func (w *workers) close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	var errs []error
	var ends sync.WaitGroup
	results := make(chan error, len(w.open))
	for pool := range w.open {
		ends.Go(func() { results <- pool.Close(ctx) })
	}
	w.mu.Unlock()
	ends.Wait()
	close(results)
	for err := range results {
		errs = append(errs, err)
	}
	w.closing.Wait()
	return errors.Join(errs...)
}

// judge has the board say whether a worker that is in force is down: as it is now, whatever has
// changed meanwhile.
func (w *workers) judge(of *workerSkill) {
	w.judging.Lock()
	defer w.judging.Unlock()
	down := of.pool.Status().Down
	switch {
	case w.find(of.name) != of: // it is not in force, and somebody else waits for it
	case down == nil:
		w.board.End(health.Worker, of.name)
	default:
		w.board.Begin(health.Condition{
			Kind: health.Worker, Subject: of.name, Code: "down",
			Effect: fmt.Sprintf("calls of the skill %s are refused: its worker does not run", of.name),
			Cause:  down.Error(),
			Remedy: "the log has what it wrote to standard error; it is started again by itself, at the latest after 30 s",
		})
	}
}

// awaited is why the agent is not ready yet: an eager worker that has never served.
func (w *workers) awaited() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, one := range w.current {
		if one.eager && !one.pool.Status().HasServed {
			return fmt.Errorf("the worker %s is starting", name)
		}
	}
	return nil
}

// beginWorkers starts the eager ones, without waiting for them.
func (d *Daemon) beginWorkers(context.Context) error {
	d.workers.mu.Lock()
	defer d.workers.mu.Unlock()
	for _, one := range d.workers.current {
		if one.eager {
			one.pool.Begin()
		}
	}
	return nil
}

// status describes those in force, by name.
func (w *workers) status() (all []control.Worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, one := range w.current {
		s := one.pool.Status()
		c := control.Worker{
			Skill: name, Instances: s.Instances, Serving: s.Serving, Idle: !s.Begun || s.Asleep == s.Instances, Running: s.Running, Waiting: s.Waiting, Restarts: s.Restarts, Recycled: s.Recycled,
		}
		if s.Down != nil {
			c.Down = s.Down.Error()
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b control.Worker) int { return strings.Compare(a.Skill, b.Skill) })
	return all
}
