package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
)

// However often a fleet is reloaded, only its files of the start and those in force are in
// memory: nothing of an agent, at neither end of its calls, keeps what it served with before.
func TestReloadsLeaveNothing(t *testing.T) {
	t.Parallel()
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	const reloads = 5
	var gone atomic.Int64
	for i := range reloads {
		rewrite(t, cfg, "callee/capabilities.yaml", fmt.Sprintf("%s# %d\n", files()["callee/capabilities.yaml"], i))
		rewrite(t, cfg, "caller/agent.yaml", fmt.Sprintf("%s# %d\n", files()["caller/agent.yaml"], i))
		read := sync.OnceValues(f.Daemons[0].LoadFiles)
		for _, d := range f.Daemons {
			if err := d.ReloadFrom(read); err != nil {
				t.Fatal(err)
			}
		}
		now, err := read()
		if err != nil {
			t.Fatal(err)
		}
		follow := func(m *fleet.Member) {
			runtime.AddCleanup(m, func(n *atomic.Int64) { n.Add(1) }, &gone)
			if m.Capabilities != nil {
				runtime.AddCleanup(m.Capabilities, func(n *atomic.Int64) { n.Add(1) }, &gone)
			}
		}
		for _, d := range f.Daemons {
			if m, _ := now.Member(d.Member().ID); m != d.Member() {
				t.Fatalf("%s has files of its own", m.ID)
			}
			follow(d.Member())
		}
		if _, err := goCall(t, f); err != nil {
			t.Fatal(err)
		}
	}
	// Of each generation but the last: two members, and one contract.
	eventually.Holds(t, "what was replaced is collected", func() bool { runtime.GC(); return gone.Load() == 3*(reloads-1) })
	runtime.KeepAlive(f)
}

// One fault in the files that agents share is one fault, and nothing is in force.
func TestReloadFromFaultyFiles(t *testing.T) {
	t.Parallel()
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	if err := os.Remove(filepath.Join(cfg.Fleet.Root, "callee", "agent.yaml")); err != nil {
		t.Fatal(err)
	}
	read := sync.OnceValues(f.Daemons[0].LoadFiles)
	for _, d := range f.Daemons {
		if err := d.ReloadFrom(read); err == nil || len(d.Status().Conditions) != 1 {
			t.Errorf("%s: %v, %+v", d.Member().ID, err, d.Status().Conditions)
		}
	}
	if _, err := goCall(t, f); err != nil {
		t.Error(err)
	}
}
