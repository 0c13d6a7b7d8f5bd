package daemon

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// newGate builds the drift gate. Stop closes it.
func (d *Daemon) newGate(mode drift.Mode) *drift.Gate {
	limits := d.Member().Agent.Limits
	return drift.NewGate(drift.Options{
		Mode: mode, Auditor: d.audit, Logger: d.log, Changed: d.mcp.changed,
		Compile: schema.CompileLimits{
			MaxBytes: limits.MaxSchemaBytes, MaxSteps: limits.MaxCompileSteps, MaxPatternSteps: limits.MaxPatternSteps,
		},
		Budget: contain.Budget{Steps: limits.MaxProofSteps},
	})
}

// reloadGate puts a member's drift mode in force, and has every peer asked again by
// the next call to it: what the gate knows it has found out with the old files.
func (d *Daemon) reloadGate(m *fleet.Member) {
	d.gate.SetMode(drift.Mode(m.Agent.Drift))
	d.gate.Reset(d.callable())
	d.followPeers()
}

// refollow is when peers that could not be followed are tried again.
const refollow = 30 * time.Second

// followPeers has the gate hear when peers announce that they serve something else.
// Where that cannot be, such as without the broker's permission, it tries again later:
// until then a change is noticed by the next call, and a refusal of calls ends after a
// bounded time.
func (d *Daemon) followPeers() {
	err := d.client.Follow(d.callable(), d.gate.Notify)
	told := d.following.again(err, d.followPeers)
	switch {
	case err != nil && !told:
		d.log.Warn("changes of these peers' contracts are not heard at once: give the agent the permissions that `agentd fleet nats-config` writes", "error", err)
	case err == nil && told:
		d.log.Info("changes of all peers' contracts are heard")
	}
}

// callable are the peers that this agent may call now.
func (d *Daemon) callable() []rpc.Peer {
	return slices.Collect(maps.Values(d.peers.current.Load().Peers))
}

// A following tries again what failed. The zero value is ready.
type following struct {
	running sync.WaitGroup

	mu     sync.Mutex
	failed bool        // guarded by mu
	closed bool        // guarded by mu
	timer  *time.Timer // guarded by mu; nil: nothing waits
}

// again calls f later if err is not nil. It returns whether it has failed before.
func (f *following) again(err error, retry func()) (failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed, f.failed = f.failed, err != nil
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	if err != nil && !f.closed {
		f.timer = time.AfterFunc(refollow, func() { f.run(retry) })
	}
	return failed
}

func (f *following) run(retry func()) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	f.running.Add(1)
	f.mu.Unlock()
	defer f.running.Done()
	retry()
}

// close waits for a call that runs; there are no more.
func (f *following) close() {
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	f.running.Wait()
}
