package daemon_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
)

// A callLoad makes one call after another until it is stopped.
type callLoad struct {
	stopped atomic.Bool
	made    atomic.Int64
	caller  sync.WaitGroup
	failed  []error // set until caller is done
}

func startLoad(ctx context.Context, d *daemon.Daemon) *callLoad {
	l := &callLoad{}
	l.caller.Go(func() {
		for !l.stopped.Load() {
			_, err := d.Client().RequestAgent(ctx, rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
			l.made.Add(1)
			if err != nil {
				l.failed = append(l.failed, err)
			}
			time.Sleep(time.Millisecond) // other tests run beside this one
		}
	})
	return l
}

// more waits until n further calls have been made: what has been done is in force for
// those.
func (l *callLoad) more(t *testing.T, n int64) {
	t.Helper()
	before := l.made.Load()
	eventually.Holds(t, "further calls", func() bool { return l.made.Load() >= before+n })
}

func (l *callLoad) stop() (made int64, failed []error) {
	l.stopped.Store(true)
	l.caller.Wait()
	return l.made.Load(), l.failed
}

// publishOwn lists in identities.yaml all keys of an agent that its file has, as
// `agentd identity publish` does.
func publishOwn(t *testing.T, cfg daemon.Config, id string) {
	t.Helper()
	keys, err := identity.Store{Path: cfg.Paths.Identity(id)}.Keys()
	if err != nil {
		t.Fatal(err)
	}
	all := reread(t, cfg).Fleet.Identities
	for i := range all {
		if all[i].Agent.ID() != id {
			continue
		}
		all[i].Auth.PublicKeys = nil
		for _, k := range keys {
			all[i].Auth.PublicKeys = append(all[i].Auth.PublicKeys, fleet.PublicKey{Key: k.Public, NotBefore: k.Window.NotBefore, NotAfter: k.Window.NotAfter})
		}
	}
	if err := fleet.WriteIdentities(cfg.Fleet.Root, all); err != nil {
		t.Fatal(err)
	}
}

// Three replicas of an agent change its key, and are restarted one after another, while
// they are called all the time: no call fails. The steps are those of docs/identity.md,
// and must be done before the new key takes over. A machine that is too slow for that
// begins again, with more time.
func TestRotationOverReplicas(t *testing.T) {
	t.Parallel()
	for _, within := range []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second, 2 * time.Minute} {
		if rotateOverReplicas(t, within) {
			return
		}
		t.Logf("the steps of a rotation took longer than %s", within)
	}
	t.Error("the steps of a rotation took too long")
}

// rotateOverReplicas rotates the key in a fleet of its own. It returns false, and reports
// nothing, if the new key took over before all agents knew it.
func rotateOverReplicas(t *testing.T, within time.Duration) (inTime bool) {
	t.Helper()
	cfg := proven(t)
	caller := startAgent(t, cfg, "caller")
	var cfgs [3]daemon.Config
	var served [3]*atomic.Int64
	var replicas [3]*daemon.Daemon
	start := func(i int) {
		d, err := daemon.Start(t.Context(), cfgs[i], "callee")
		if err != nil {
			t.Fatal(err)
		}
		replicas[i] = d
	}
	for i := range cfgs {
		cfgs[i] = cfg
		if i > 0 {
			cfgs[i] = replicaOf(t, cfg, "test")
			copyKeys(t, cfg, cfgs[i], "callee")
		}
		cfgs[i], served[i] = counted(cfgs[i])
		start(i)
	}
	defer func() { stop(t, &daemon.Fleet{Daemons: replicas[:]}) }()
	ctx, abandon := context.WithCancel(t.Context())
	calling := startLoad(ctx, caller)
	defer func() { // before the replicas stop, also when a step fails
		abandon()
		calling.stop()
	}()

	// The new key is made on the first replica, and takes over while the second one does
	// not have it yet.
	now := time.Now()
	takesOver := now.Add(within).Truncate(time.Second)
	if _, err := (identity.Store{Path: cfg.Paths.Identity("callee")}).Rotate(now, takesOver, time.Hour); err != nil {
		t.Fatal(err)
	}
	copyKeys(t, cfg, cfgs[2], "callee")
	publishOwn(t, cfg, "callee")
	for _, d := range []*daemon.Daemon{replicas[2], replicas[1], replicas[0], caller} {
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if !time.Now().Before(takesOver) {
		return false
	}
	for replicas[1].Ready() == nil {
		if !time.Now().Before(takesOver) {
			t.Error("a replica is ready that lacks the key which takes over in a moment")
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Until(takesOver))
	before := served[1].Load()
	calling.more(t, 50)
	if n := served[1].Load() - before; n != 0 {
		t.Errorf("the replica without the key served %d calls", n)
	}
	copyKeys(t, cfg, cfgs[1], "callee")
	eventually.Holds(t, "the replica has the key", func() bool { return replicas[1].Ready() == nil })

	// A rolling restart, with the files as they are now.
	for i := range replicas {
		stop(t, &daemon.Fleet{Daemons: replicas[i : i+1]})
		calling.more(t, 20)
		cfgs[i] = reread(t, cfgs[i])
		before := served[i].Load()
		start(i)
		eventually.Holds(t, "the replica takes its share", func() bool { return served[i].Load() > before })
	}
	made, failed := calling.stop()
	if len(failed) > 0 {
		t.Errorf("%d of %d calls failed, the first one: %v", len(failed), made, failed[0])
	}
	t.Logf("%d calls, by replica %d, %d, %d", made, served[0].Load(), served[1].Load(), served[2].Load())
	return true
}
