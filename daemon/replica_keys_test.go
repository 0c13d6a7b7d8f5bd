package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// counted is cfg with a skill that counts its calls.
func counted(cfg daemon.Config) (daemon.Config, *atomic.Int64) {
	n := new(atomic.Int64)
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		n.Add(1)
		return inv.Payload, nil
	})
	return cfg, n
}

// proven is a fleet on a broker of its own, whose two agents have published keys, as they
// are started from there.
func proven(t *testing.T) daemon.Config {
	t.Helper()
	cfg := load(t, natsFiles(natstest.Run(t, "").URL()))
	publishKeys(t, cfg, "callee", "caller")
	return reread(t, cfg)
}

// reread is cfg with the files as they are now.
func reread(t *testing.T, cfg daemon.Config) daemon.Config {
	t.Helper()
	f, err := cfg.Fleet.Reload()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Fleet = f
	return cfg
}

// copyKeys brings the keys of an agent from one replica to another.
func copyKeys(t *testing.T, from, to daemon.Config, id string) {
	t.Helper()
	keys, err := identity.Store{Path: from.Paths.Identity(id)}.Keys()
	if err == nil {
		err = identity.Store{Path: to.Paths.Identity(id)}.Replace(keys, time.Now(), true)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// calls makes calls one after another, none of which may fail.
func calls(t *testing.T, d *daemon.Daemon, n int) {
	t.Helper()
	for range n {
		if err := callGo(t, d, `{"n":1}`); err != nil {
			t.Fatalf("a call failed: %v", err)
		}
	}
}

// code is the code of an agent's condition about its own keys, or "".
func code(d *daemon.Daemon) string {
	for _, c := range d.Status().Conditions {
		if c.Kind == "identity" && c.Subject == "" {
			return c.Code
		}
	}
	return ""
}

// A replica that has not the published key says so and leaves all requests to the one
// that has it, and it takes its share as soon as the key is there,
// without a restart.
func TestReplicaWithoutThePublishedKey(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"with a key of its own": true, "without any": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := proven(t)
			firstCfg, firstServed := counted(cfg)
			startAgent(t, firstCfg, "callee")
			caller := startAgent(t, cfg, "caller")
			secondCfg, secondServed := counted(replicaOf(t, cfg, "test"))
			secondCfg, logged := logTo(secondCfg)
			other := identity.Store{Path: secondCfg.Paths.Identity("callee")}
			if own {
				if _, err := other.Ensure(time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			second := startAgent(t, secondCfg, "callee")
			if err := second.Ready(); err == nil || !strings.Contains(err.Error(), "this replica takes no requests") || code(second) != "unknown-key" {
				t.Errorf("%v, condition %q", err, code(second))
			}
			if _, err := os.Stat(other.Path); own == errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file of keys: %v", err)
			}
			calls(t, caller, 40)
			if secondServed.Load() != 0 || firstServed.Load() != 40 {
				t.Errorf("the replicas served %d and %d calls", firstServed.Load(), secondServed.Load())
			}

			copyKeys(t, cfg, secondCfg, "callee")
			eventually.Holds(t, "the replica is ready", func() bool { return second.Ready() == nil && code(second) == "" })
			for secondServed.Load() == 0 {
				calls(t, caller, 1)
			}

			// Another key in the file does not take the right one from a running agent.
			wrong, err := identity.Store{Path: replicaOf(t, cfg, "test").Paths.Identity("callee")}.Ensure(time.Now())
			if err == nil {
				err = other.Replace(wrong, time.Now(), true)
			}
			if err != nil {
				t.Fatal(err)
			}
			for code(second) != "key-file" {
				calls(t, caller, 1)
			}
			if err := second.Reload(); err != nil {
				t.Error(err)
			}
			if before := secondServed.Load(); second.Ready() == nil && code(second) == "key-file" {
				for secondServed.Load() == before {
					calls(t, caller, 1)
				}
			} else {
				t.Errorf("ready: %v, condition %q", second.Ready(), code(second))
			}
			calls(t, caller, 20)
			if text := logged(); strings.Count(text, `level=ERROR msg="this replica takes no requests`) != 1 || strings.Count(text, `msg="over: this replica takes no requests`) != 1 {
				t.Errorf("logged %s", text)
			}
		})
	}
}

// The calls of such a replica fail at once and say why, instead of timing out, until it
// has the key.
func TestCallsWithoutThePublishedKey(t *testing.T) {
	t.Parallel()
	cfg := proven(t)
	calleeCfg, _ := counted(cfg)
	startAgent(t, calleeCfg, "callee")
	second := replicaOf(t, cfg, "test")
	if _, err := (identity.Store{Path: second.Paths.Identity("caller")}).Ensure(time.Now()); err != nil {
		t.Fatal(err)
	}
	caller := startAgent(t, second, "caller")
	err := callGo(t, caller, `{"n":1}`)
	if rpc.CodeOf(err) != rpc.CodeAuthFailed || !strings.Contains(err.Error(), "this agent cannot prove itself to agent://callee: unknown-key") {
		t.Errorf("%v", err)
	}
	if why := caller.Ready(); why == nil || !strings.Contains(why.Error(), "agentd identity import") {
		t.Errorf("ready: %v", why)
	}
	copyKeys(t, cfg, second, "caller")
	eventually.Holds(t, "the caller has the key", func() bool { return caller.Ready() == nil })
	calls(t, caller, 3)
}

// Which of two keys is the right one is what identities.yaml says: published, the other
// replica's key is in force with the next reload, and the first replica steps back.
func TestAnotherKeyIsPublished(t *testing.T) {
	t.Parallel()
	cfg := proven(t)
	firstCfg, _ := counted(cfg)
	first := startAgent(t, firstCfg, "callee")
	caller := startAgent(t, cfg, "caller")
	secondCfg, served := counted(replicaOf(t, cfg, "test"))
	keys, err := identity.Store{Path: secondCfg.Paths.Identity("callee")}.Ensure(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	second := startAgent(t, secondCfg, "callee")
	all := cfg.Fleet.Identities
	for i := range all {
		if all[i].Agent == "agent://callee" {
			all[i].Auth.PublicKeys = []fleet.PublicKey{{Key: keys[0].Public}}
		}
	}
	if err := fleet.WriteIdentities(cfg.Fleet.Root, all); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*daemon.Daemon{first, second, caller} {
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if first.Ready() == nil || second.Ready() != nil {
		t.Errorf("first: %v, second: %v", first.Ready(), second.Ready())
	}
	calls(t, caller, 10)
	if served.Load() != 10 {
		t.Errorf("the second replica served %d of 10 calls", served.Load())
	}
}

// A key file that cannot be read leaves the keys in force that were read before, and
// is read as soon as it can be.
func TestKeyFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	cfg := proven(t)
	calleeCfg, _ := counted(cfg)
	callee, caller := startAgent(t, calleeCfg, "callee"), startAgent(t, cfg, "caller")
	path := cfg.Paths.Identity("callee")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unreadable := func() bool {
		for _, c := range callee.Status().Conditions {
			if c.Kind == "identity" && c.Subject == "key-files" {
				return true
			}
		}
		return false
	}
	for what, breakIt := range map[string]func() error{
		"half a file":        func() error { return os.WriteFile(path, good[:len(good)/2], 0o600) },
		"readable by others": func() error { return os.Chmod(path, 0o644) },
	} {
		if err := breakIt(); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, what, unreadable)
		if err := callee.Ready(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		calls(t, caller, 1)
		if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, good, 0o600)); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, what+", mended", func() bool { return !unreadable() })
	}
}

// What a queue keeps for such a replica stays there until it has the key: it is neither
// refused nor dead-lettered.
func TestQueuedRequestsAwaitTheKey(t *testing.T) {
	t.Parallel()
	cfg := load(t, durableFiles(natstest.Run(t, "jetstream {}").URL()))
	publishKeys(t, cfg, "callee", "caller")
	cfg = reread(t, cfg)
	caller := startAgent(t, cfg, "caller")
	otherCfg, served := counted(replicaOf(t, cfg, "test"))
	other := startAgent(t, otherCfg, "callee") // which makes the queue
	result, err := caller.Client().RequestAgent(t.Context(), rpc.Request{
		To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Mode: rpc.ModeAsync, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := other.Letters(t.Context()); err != nil || len(all) != 0 || served.Load() != 0 || code(other) != "unknown-key" {
		t.Errorf("%v, %v; %d served, condition %q", all, err, served.Load(), code(other))
	}
	copyKeys(t, cfg, otherCfg, "callee")
	got, err := caller.Client().Await(t.Context(), result.CorrelationID)
	if err != nil || string(got.Response) != `{"n":1}` || served.Load() != 1 {
		t.Errorf("%+v, %v; %d served", got, err, served.Load())
	}
}

// The file of a shared secret is followed like that of an agent's own keys.
func TestSharedSecretIsReplaced(t *testing.T) {
	t.Parallel()
	all := natsFiles(natstest.Run(t, "").URL())
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("the first of two secrets")
	auth := "auth: {provider: hmac, keyId: k, secretRef: 'file:" + secret + "'}}"
	all["identities.yaml"] = "version: 1\nidentities: [{agent: agent://caller, " + auth + ", {agent: agent://callee, " + auth + "]\n"
	cfg, logged := logTo(withGo(load(t, all)))
	startAgent(t, cfg, "callee")
	caller := startAgent(t, cfg, "caller")
	calls(t, caller, 1)
	write("and the second one, which is longer")
	eventually.Holds(t, "both have read the new secret", func() bool { return strings.Count(logged(), "keys read again") == 2 })
	calls(t, caller, 1)
	for _, e := range ofKind(t, cfg, "callee", auditchain.KindLifecycle) {
		if e["event"] == "keys-changed" {
			actor, _ := e["actor"].(map[string]any)
			if actor["uid"] != float64(os.Getuid()) {
				t.Errorf("changed by %v", e["actor"])
			}
			return
		}
	}
	t.Error("no record of the change")
}

// A key that is rotated and not published signs nothing: the published one goes on.
func TestRotatedAndNotPublished(t *testing.T) {
	t.Parallel()
	cfg := proven(t)
	calleeCfg, _ := counted(cfg)
	callee, caller := startAgent(t, calleeCfg, "callee"), startAgent(t, cfg, "caller")
	now := time.Now()
	if _, err := (identity.Store{Path: cfg.Paths.Identity("callee")}).Rotate(now, now, time.Hour); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the new key is seen", func() bool { return code(callee) == "unpublished" })
	if err := callee.Ready(); err != nil {
		t.Error(err)
	}
	calls(t, caller, 3)
}
