package daemon_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// rewrite replaces one file of a running fleet.
func rewrite(t *testing.T, cfg daemon.Config, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(cfg.Fleet.Root, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What takes a restart is refused, with the reason, and the agent goes on as it was.
func TestReloadRefuses(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	for name, test := range map[string]struct {
		agent  string
		change func(all map[string]string)
		says   string
	}{
		"the agent is gone": {"caller", func(all map[string]string) {
			all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], ", {id: caller, path: ./caller}", "", 1)
		}, `no longer has the agent "caller"`},
		"it offers nothing any more": {"callee", func(all map[string]string) { delete(all, "callee/capabilities.yaml") },
			"callee starts or stops offering capabilities"},
		"it begins to offer": {"caller", func(all map[string]string) {
			all["caller/capabilities.yaml"] = "version: 1\nagent: agent://caller\ntransports: [{kind: memory, topics: {requests: c}}]\ncapabilities: [{name: go}]\n"
		}, "caller starts or stops offering capabilities"},
	} {
		t.Run(name, func(t *testing.T) {
			all := natsFiles(server.URL())
			cfg := load(t, all)
			cfg.Handlers = handle(echo)
			f := startFleet(t, cfg)
			defer stop(t, f)
			test.change(all)
			for _, file := range []string{"fleet.yaml", "callee/capabilities.yaml", "caller/capabilities.yaml"} {
				if text, ok := all[file]; ok {
					rewrite(t, cfg, file, text)
				} else {
					_ = os.Remove(filepath.Join(cfg.Fleet.Root, file)) // most cases have no such file
				}
			}
			d, _ := f.Daemon(test.agent)
			before := d.Member()
			if err := d.Reload(); err == nil || !strings.HasPrefix(err.Error(), "reload: ") || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
			if d.Member() != before {
				t.Error("something was swapped")
			}
			if _, err := goCall(t, f); err != nil {
				t.Errorf("a call afterwards: %v", err)
			}
			// Whoever looks at the agent later finds that, and when it began, until the files
			// are as they were.
			refused := func() (all []health.Condition) {
				for _, c := range d.Status().Conditions {
					if c.Kind == health.Reload {
						all = append(all, c)
					}
				}
				return all
			}
			first := refused()
			if len(first) != 1 || !first[0].Advisory || !strings.Contains(first[0].Cause, test.says) || !strings.Contains(strings.Join(d.Warnings(), "\n"), test.says) || !d.Status().Ready {
				t.Errorf("conditions %+v, warnings %q", first, d.Warnings())
			}
			if err := d.Reload(); err == nil || len(refused()) != 1 || refused()[0].Since != first[0].Since {
				t.Errorf("after another reload: %v, %+v", err, refused())
			}
			for file, text := range natsFiles(server.URL()) {
				rewrite(t, cfg, file, text)
			}
			if test.agent == "caller" {
				_ = os.Remove(filepath.Join(cfg.Fleet.Root, "caller/capabilities.yaml"))
			}
			if err := d.Reload(); err != nil || len(refused()) != 0 {
				t.Errorf("with the files as they were: %v, %+v", err, refused())
			}
		})
	}
}

// What takes a restart waits for it, by name, and the rest is in force. Taking the
// change back ends the wait.
func TestReloadWaitsForRestart(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	all := natsFiles(server.URL())
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	callee, _ := f.Daemon("callee")
	caller, _ := f.Daemon("caller")
	audit := callee.AuditDB()

	durable := durableFiles(server.URL())["callee/capabilities.yaml"] + "  - {name: more, skill: go}\n"
	rewrite(t, cfg, "callee/capabilities.yaml", strings.Replace(durable, "agents.callee.requests", "agents.elsewhere.requests", 1))
	rewrite(t, cfg, "callee/agent.yaml", all["callee/agent.yaml"]+"audit: {onFailure: open}\ndurable: {maxDeliver: 2}\n")
	rewrite(t, cfg, "fleet.yaml", strings.Replace(all["fleet.yaml"], "path: ./callee", "path: ./callee, auditDb: ./other.db", 1))
	for _, d := range f.Daemons {
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"agent.yaml: audit.onFailure", "agent.yaml: durable", "capabilities.yaml: transports", "capabilities.yaml: delivery: durable", "fleet.yaml: agents.auditDb"}
	if got := callee.AwaitsRestart(); !slices.Equal(got, want) {
		t.Errorf("waits for\n%q, want\n%q", got, want)
	}
	if got := caller.AwaitsRestart(); len(got) != 0 {
		t.Errorf("the caller waits for %q", got)
	}
	if got := callee.Status().Warnings; len(got) != 1 || !strings.Contains(got[0], "a restart is needed for agent.yaml: audit.onFailure, ") {
		t.Errorf("warnings %q", got)
	}
	if callee.AuditDB() != audit {
		t.Errorf("the open log is said to be %s, and is %s", callee.AuditDB(), audit)
	}
	if _, ok := callee.Member().Capabilities.Lookup("more"); !ok {
		t.Error("the rest is not in force")
	}
	for name, text := range all {
		rewrite(t, cfg, name, text)
	}
	for _, d := range f.Daemons {
		if err := d.Reload(); err != nil || len(d.AwaitsRestart()) != 0 || len(d.Warnings()) != 0 {
			t.Errorf("taken back: %v, %q, %q", err, d.AwaitsRestart(), d.Warnings())
		}
	}
	if _, err := goCall(t, f); err != nil {
		t.Errorf("a call afterwards: %v", err)
	}
}

// Limits of calls are in force for the calls that begin after a reload, at both ends.
func TestReloadSwapsLimits(t *testing.T) {
	t.Parallel()
	all := files()
	cfg := load(t, all)
	started, release := make(chan struct{}, 1), make(chan struct{})
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if string(inv.Payload) != `{"n":1}` {
			return inv.Payload, nil
		}
		started <- struct{}{}
		<-release
		return inv.Payload, nil
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	callee, _ := f.Daemon("callee")
	caller, _ := f.Daemon("caller")
	reload := func(d *daemon.Daemon, limits string) {
		t.Helper()
		id := d.Member().ID
		rest := slices.DeleteFunc(strings.SplitAfter(all[id+"/agent.yaml"], "\n"), func(line string) bool { return strings.HasPrefix(line, "limits: ") })
		rewrite(t, cfg, id+"/agent.yaml", strings.Join(rest, "")+"limits: "+limits+"\n")
		if err := d.Reload(); err != nil || len(d.AwaitsRestart()) != 0 {
			t.Fatal(err, d.AwaitsRestart())
		}
	}
	big := `{"n":2,"text":"` + strings.Repeat("x", 100) + `"}`
	reload(caller, "{maxPayloadBytes: 50}")
	if err := callGo(t, caller, big); rpc.CodeOf(err) != rpc.CodePayloadTooLarge {
		t.Errorf("a large request: %v", err)
	}
	reload(caller, "{maxPending: 1}")
	done := make(chan error, 1)
	go func() { done <- callGo(t, caller, `{"n":1}`) }()
	<-started
	if err := callGo(t, caller, `{"n":2}`); rpc.CodeOf(err) != rpc.CodeBusy {
		t.Errorf("a second call that waits: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	reload(caller, "{}")
	reload(callee, "{maxPayloadBytes: 50}")
	if err := callGo(t, caller, big); rpc.CodeOf(err) != rpc.CodePayloadTooLarge && rpc.CodeOf(err) != rpc.CodeBadSkillOutput {
		t.Errorf("a large response: %v", err)
	}
	reload(callee, "{}")
	if err := callGo(t, caller, big); err != nil {
		t.Errorf("with the defaults again: %v", err)
	}
}

// A reload brings capabilities, skills and peers into force, and keeps the counts of
// what was served before.
func TestReloadSwaps(t *testing.T) {
	all := files()
	cfg := load(t, all)
	f := startFleet(t, withGo(cfg))
	defer stop(t, f)
	callee, _ := f.Daemon("callee")
	caller, _ := f.Daemon("caller")
	digest := callee.Status().Digest
	call := func(capability string) error {
		_, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: capability, Payload: json.RawMessage(`{"n":1}`)})
		return err
	}
	if err := call("go"); err != nil {
		t.Fatal(err)
	}
	if err := call("dog"); rpc.CodeOf(err) != rpc.CodeNoCapability {
		t.Fatalf("before the reload: %v", err)
	}
	rewrite(t, cfg, "callee/capabilities.yaml", all["callee/capabilities.yaml"]+"  - {name: dog, skill: bark}\n")
	rewrite(t, cfg, "callee/agent.yaml", all["callee/agent.yaml"][:len(all["callee/agent.yaml"])-2]+", bark: {process: {command: [cat]}}}\n")
	for _, d := range f.Daemons {
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	for _, capability := range []string{"dog", "go"} {
		if err := call(capability); err != nil {
			t.Errorf("%s after the reload: %v", capability, err)
		}
	}
	if after := callee.Status().Digest; after == digest {
		t.Errorf("the digest is still %s", after)
	}
	// A request is counted after its reply has left.
	eventually.Holds(t, "the requests before and after are counted", func() bool { return callee.Status().Requests == 3 })

	rewrite(t, cfg, "rpc-peers.yaml", "version: 1\npeers: []\n")
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := call("go"); rpc.CodeOf(err) != rpc.CodeNoPeer {
		t.Errorf("the peer is gone: %v", err)
	}
	if n := len(caller.VerifyPeers(t.Context(), nil)); n != 0 {
		t.Errorf("%d peers are left", n)
	}
}

// withGo runs the capability go as a function.
func withGo(cfg daemon.Config) daemon.Config {
	cfg.Handlers = handle(echo)
	return cfg
}

// A call that runs finishes under the rules with which it began.
func TestReloadDuringACall(t *testing.T) {
	all := files()
	cfg := load(t, all)
	started, release := make(chan struct{}), make(chan struct{})
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-release
		return inv.Payload, nil
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	done := make(chan error, 1)
	go func() { _, err := goCall(t, f); done <- err }()
	<-started
	// The skill's answer would not be valid any more, and the capability is gone.
	rewrite(t, cfg, "callee/capabilities.yaml", strings.Replace(all["callee/capabilities.yaml"], "- name: go", "- name: other\n    skill: go\n    outputSchema: {type: string}", 1))
	d, _ := f.Daemon("callee")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the call that ran: %v", err)
	}
	if _, err := goCall(t, f); err == nil {
		t.Error("the capability is gone, and was served")
	}
}

// Reloads from several goroutines follow one another; calls meanwhile all succeed.
func TestConcurrentReloads(t *testing.T) {
	cfg := load(t, files())
	f := startFleet(t, withGo(cfg))
	callee, _ := f.Daemon("callee")
	caller, _ := f.Daemon("caller")
	const reloads, calls = 4, 50
	var all sync.WaitGroup
	for range reloads {
		all.Go(func() {
			for _, d := range f.Daemons {
				if err := d.Reload(); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range calls {
				if err := callGo(t, caller, `{"n":1}`); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	eventually.Holds(t, "every request is counted", func() bool { return callee.Status().Requests == reloads*calls })
	stop(t, f)
	for _, agent := range []string{"callee", "caller"} {
		n := 0
		for _, body := range ofKind(t, cfg, agent, auditchain.KindLifecycle) {
			if body["event"] == "reloaded" && body["version"] == "test" {
				n++
			}
		}
		if n != reloads {
			t.Errorf("%s has recorded %d reloads, want %d", agent, n, reloads)
		}
	}
}

// A call to an agent that is no peer says where peers are listed, and which there are.
func TestNoPeerNamesTheFile(t *testing.T) {
	t.Parallel()
	all := files()
	cfg := load(t, all)
	f := startFleet(t, withGo(cfg))
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	message := func(to envelope.Address) string {
		t.Helper()
		_, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: to, Capability: "go"})
		if rpc.CodeOf(err) != rpc.CodeNoPeer {
			t.Errorf("%s: %v", to, err)
		}
		return err.Error()
	}
	if got := message("agent://calee"); !strings.Contains(got, filepath.Join(cfg.Fleet.Root, "rpc-peers.yaml")+` lists callee; did you mean "callee"?`) {
		t.Error(got)
	}
	rewrite(t, cfg, "fleet.yaml", strings.Replace(all["fleet.yaml"], "environments: {default: {peersRef: ./rpc-peers.yaml}}\n", "", 1))
	if err := os.Remove(filepath.Join(cfg.Fleet.Root, "rpc-peers.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := message("callee"); !strings.Contains(got, "agent://caller has no peers file: list it in rpc-peers.yaml beside fleet.yaml") {
		t.Error(got)
	}
}

// What a reload says about the gate, it does: a mode that is changed counts at once.
func TestReloadSwapsTheDriftMode(t *testing.T) {
	t.Parallel()
	all := files()
	cfg := load(t, all)
	f := startFleet(t, withGo(cfg))
	defer stop(t, f)
	callee, _ := f.Daemon("callee")
	caller, _ := f.Daemon("caller")
	// Only the callee reads this: the caller holds what it was built against.
	rewrite(t, cfg, "callee/capabilities.yaml", strings.Replace(all["callee/capabilities.yaml"], "n: {type: integer}", "n: {type: string}", 1))
	if err := callee.Reload(); err != nil {
		t.Fatal(err)
	}
	rewrite(t, cfg, "callee/capabilities.yaml", all["callee/capabilities.yaml"])
	for _, test := range []struct {
		mode string
		code rpc.Code // of the gate, or of the callee that the call has reached
	}{{"enforce", rpc.CodeSchemaDrift}, {"off", rpc.CodeSchemaViolation}, {"enforce", rpc.CodeSchemaDrift}, {"warn", rpc.CodeSchemaViolation}} {
		rewrite(t, cfg, "caller/agent.yaml", all["caller/agent.yaml"]+"drift: '"+test.mode+"'\n")
		if err := caller.Reload(); err != nil || len(caller.AwaitsRestart()) != 0 {
			t.Fatal(err, caller.AwaitsRestart())
		}
		if err := callGo(t, caller, `{"n":1}`); rpc.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want %v", test.mode, err, test.code)
		}
	}
}
