package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// natsFiles is the fleet of files with NATS in the place of memory.
func natsFiles(server string) map[string]string {
	all := files()
	on := "{kind: nats, servers: ['" + server + "'], subjects: {requests: agents.callee.requests}}"
	memory := "{kind: memory, topics: {requests: agents.callee.requests}}"
	for _, name := range []string{"rpc-peers.yaml", "callee/capabilities.yaml"} {
		all[name] = strings.Replace(all[name], memory, on, 1)
	}
	return all
}

// startAgent starts one agent in a process of its own, as far as agents can tell.
func startAgent(t testing.TB, cfg daemon.Config, id string) *daemon.Daemon {
	t.Helper()
	d, err := daemon.Start(t.Context(), cfg, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}}) })
	return d
}

// replicaOf is cfg with paths of its own: state belongs to one process.
func replicaOf(t testing.TB, cfg daemon.Config, version string) daemon.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg.Paths = daemon.Paths{State: filepath.Join(dir, "s"), Runtime: filepath.Join(dir, "r")}
	cfg.Version = version
	return cfg
}

// logTo returns cfg with a logger, and what it has logged so far.
func logTo(cfg daemon.Config) (daemon.Config, func() string) {
	var mu sync.Mutex
	var text bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}), nil))
	return cfg, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func callGo(t testing.TB, d *daemon.Daemon, payload string) error {
	t.Helper()
	_, err := d.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(payload)})
	return err
}

// A status says who runs, whether it is ready and why not, and how much it has done.
func TestStatus(t *testing.T) {
	server := natstest.Run(t, "")
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if string(inv.Payload) == `{"n":0}` {
			return nil, errors.New("no")
		}
		return inv.Payload, nil
	})
	before := time.Now()
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	if err := callGo(t, caller, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	if err := callGo(t, caller, `{"n":0}`); rpc.CodeOf(err) != rpc.CodeHandlerError {
		t.Fatal(err)
	}
	// A request is counted after its reply has left.
	eventually.Holds(t, "two requests are counted", func() bool { return callee.Status().Requests == 2 })
	s := callee.Status()
	if s.Agent != "agent://callee" || s.Fleet != "t" || s.Version != "test" || s.PID != os.Getpid() || s.Started.Before(before) ||
		!s.Ready || s.Reason != "" || len(s.Transports) != 1 || s.Transports[0] != nats.Kind || s.Digest != callee.Member().Capabilities.Digest() {
		t.Errorf("status %+v", s)
	}
	if s.Errors != 1 {
		t.Errorf("%d errors, want 1", s.Errors)
	}
	if id, err := uuid.Parse(s.Instance); err != nil || id.Variant() != uuid.RFC4122 {
		t.Errorf("instance %q: %v", s.Instance, err)
	}
	if s := caller.Status(); s.Digest != "" || s.Instance != "" || s.Requests != 0 || !s.Ready {
		t.Errorf("an agent that only calls others: %+v", s)
	}
	server.Stop()
	// The connection reports its loss to the log only.
	eventually.Holds(t, "the callee has lost the broker", func() bool { return !callee.Status().Ready })
	if s := callee.Status(); !strings.HasPrefix(s.Reason, "nats: ") || s.Instance != "" {
		t.Errorf("without a broker: %+v", s)
	}
}

// Lost is closed only when the connection has ended for good.
func TestLost(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers = handle(echo)
	d, err := daemon.Start(t.Context(), cfg, "callee")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.Lost():
		t.Error("lost while it runs")
	default:
	}
	stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}})
	select {
	case <-d.Lost():
	case <-time.After(20 * time.Second):
		t.Error("not lost after the end of the connection")
	}
	f := startFleet(t, func() daemon.Config { cfg := load(t, files()); cfg.Handlers = handle(echo); return cfg }())
	defer stop(t, f)
	if d, _ := f.Daemon("callee"); d.Lost() != nil {
		t.Error("an agent without NATS can lose it")
	}
}

// Any process finds the agents of a fleet on its broker, and no others.
func TestFindAgents(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers = handle(echo)
	callee := startAgent(t, cfg, "callee")
	replica := startAgent(t, replicaOf(t, cfg, "v9.9.9"), "callee")
	other := load(t, func() map[string]string {
		all := natsFiles(server.URL())
		all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "name: t", "name: other", 1)
		all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "agents.callee.requests", "other.callee.requests", 1)
		return all
	}())
	other.Handlers = handle(echo)
	startAgent(t, other, "callee")

	var found []control.Status
	// Nobody knows how many there are: one that is slow to answer is left out.
	eventually.Succeeds(t, "both replicas are found", func() (err error) {
		found, err = daemon.FindAgents(t.Context(), cfg.Fleet, nats.Options{})
		if err == nil && len(found) != 2 {
			err = fmt.Errorf("found %+v", found)
		}
		return err
	})
	versions := map[string]string{}
	for _, s := range found {
		if s.Agent != "agent://callee" || s.Fleet != "t" || !s.Ready || s.Digest != callee.Member().Capabilities.Digest() || s.Started.IsZero() {
			t.Errorf("found %+v", s)
		}
		versions[s.Instance] = s.Version
	}
	if versions[callee.Status().Instance] != "test" || versions[replica.Status().Instance] != "v9.9.9" {
		t.Errorf("versions %v", versions)
	}
	if found, err := daemon.FindAgents(t.Context(), load(t, files()).Fleet, nats.Options{}); err != nil || found != nil {
		t.Errorf("without a broker in the files: %+v, %v", found, err)
	}
	server.Stop()
	if _, err := daemon.FindAgents(t.Context(), cfg.Fleet, nats.Options{}); !errors.Is(err, transport.Disconnected) {
		t.Errorf("without a broker: %v", err)
	}
}

// Two fleets on one broker never serve each other's calls: the second agent on a subject
// refuses to start, and starts once the first is gone.
func TestAnotherFleetOnTheSubject(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers = handle(echo)
	first, err := daemon.Start(t.Context(), cfg, "callee")
	if err != nil {
		t.Fatal(err)
	}
	startAgent(t, replicaOf(t, cfg, "v"), "callee") // one of the same fleet is a replica
	all := natsFiles(server.URL())
	all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "name: t", "name: other", 1)
	other := load(t, all)
	other.Handlers = handle(echo)
	err = conflictOf(t, other, "callee")
	var conflict *daemon.FleetConflictError
	if !errors.As(err, &conflict) || conflict.Fleet != "other" || conflict.Other != "t" || conflict.Subject != "agents.callee.requests" ||
		!strings.Contains(err.Error(), `"other"`) || !strings.Contains(err.Error(), `"t"`) {
		t.Fatalf("%v, want a conflict", err)
	}
	// Nor does an agent of another name that was given the subject.
	renamed := natsFiles(server.URL())
	for name, text := range renamed {
		renamed[name] = strings.NewReplacer("agent://callee", "agent://clerk", "name: callee", "name: clerk", "id: callee", "id: clerk").Replace(text)
	}
	renamed["fleet.yaml"] = strings.Replace(renamed["fleet.yaml"], "name: t", "name: other", 1)
	other = load(t, renamed)
	other.Handlers = handle(echo)
	err = conflictOf(t, other, "clerk")
	if !errors.As(err, &conflict) || conflict.Agent != "agent://callee" || !strings.Contains(err.Error(), "agent://callee") {
		t.Fatalf("%v, want a conflict with agent://callee", err)
	}
	stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{first}})
	if err := callGo(t, startAgent(t, cfg, "caller"), `{"n":1}`); err != nil {
		t.Errorf("the fleet that was first: %v", err)
	}
}

// conflictOf starts an agent that must not serve, and returns why. On a busy machine the
// answer to its first question may come too late, and that to the second counts.
func conflictOf(t *testing.T, cfg daemon.Config, id string) error {
	t.Helper()
	d, err := daemon.Start(t.Context(), cfg, id)
	if err != nil {
		return err
	}
	defer stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}})
	select {
	case err := <-d.Conflict():
		return err
	case <-time.After(20 * time.Second):
		return nil
	}
}

// Two agents that start at the same moment do not find each other before they are
// announced. So each asks again afterwards, and does not go on.
func TestAnotherFleetAtTheSameMoment(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	nc, err := natsgo.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// The other agent answers the second question alone: it has not been announced before.
	questions := 0
	if _, err := nc.Subscribe("$SRV.STATS.subject-agents_callee_requests", func(m *natsgo.Msg) {
		if questions++; questions < 2 {
			return
		}
		if pong, err := nc.Request("$SRV.PING.callee", nil, 20*time.Second); err != nil || !strings.Contains(string(pong.Data), "agent://callee") {
			t.Errorf("asked before others can find the agent: %v", err)
		}
		_ = m.Respond([]byte(`{"type":"io.nats.micro.v1.stats_response","name":"callee","id":"x","metadata":{"fleet":"other"},
			"endpoints":[{"name":"go","subject":"agents.callee.requests"}]}`))
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers = handle(echo)
	d := startAgent(t, cfg, "callee")
	select {
	case err := <-d.Conflict():
		var conflict *daemon.FleetConflictError
		if !errors.As(err, &conflict) || conflict.Fleet != "t" || conflict.Other != "other" {
			t.Errorf("%v, want a conflict", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the other fleet's agent was not found")
	}
}

// An agent of an older version answers to its name alone, and is found all the same.
func TestAnotherFleetOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	nc, err := natsgo.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Subscribe("$SRV.*.callee", func(m *natsgo.Msg) {
		_ = m.Respond([]byte(`{"type":"io.nats.micro.v1.stats_response","name":"callee","id":"x","metadata":{"fleet":"other","agent":"agent://callee"},
			"endpoints":[{"name":"go","subject":"agents.callee.requests"}]}`))
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers = handle(echo)
	var conflict *daemon.FleetConflictError
	if err := conflictOf(t, cfg, "callee"); !errors.As(err, &conflict) || conflict.Other != "other" || conflict.Agent != "agent://callee" {
		t.Errorf("%v, want a conflict", err)
	}
}

// The start of one agent has no other one answer: a fleet of N agents would otherwise cause
// N² answers when it starts.
func TestStartAsksNobodyElse(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	nc, err := natsgo.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	var asked atomic.Int64
	if _, err := nc.Subscribe("$SRV.*", func(*natsgo.Msg) { asked.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers = handle(echo)
	d := startAgent(t, cfg, "callee")
	// Stop waits for the question that is asked in the background.
	stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}})
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d questions to every service on the broker", n)
	}
}

// When the first fleet is gone, the second may have its subjects.
func TestAfterAnotherFleet(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	for _, name := range []string{"t", "other", "t"} {
		all := natsFiles(server.URL())
		all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "name: t", "name: "+name, 1)
		cfg := load(t, all)
		cfg.Handlers = handle(echo)
		d, err := daemon.Start(t.Context(), cfg, "callee")
		if err != nil {
			t.Fatal(err)
		}
		stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}})
	}
}

// Each peer is asked what it serves now, and that is held against what the caller was
// built with.
func TestVerifyPeers(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	all := natsFiles(server.URL())
	on := "transports: [{kind: nats, servers: ['" + server.URL() + "'], subjects: {requests: agents.%.requests}}]"
	all["pinned.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "required: [n]", "required: []", 1)
	all["rpc-peers.yaml"] += "    capabilities: ./pinned.yaml\n  - agent: agent://absent\n    " + strings.Replace(on, "%", "absent", 1) + "\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	startAgent(t, cfg, "callee")
	startAgent(t, replicaOf(t, cfg, "v9.9.9"), "callee")
	caller := startAgent(t, cfg, "caller")

	var got []control.PeerStatus
	eventually.Succeeds(t, "both replicas are met", func() error {
		if got = caller.VerifyPeers(t.Context(), nil); len(got) != 2 || got[0].Instances != 2 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	callee, absent := got[0], got[1]
	if callee.Peer != "agent://callee" || callee.State != control.PeerDrifted || len(callee.Differ) != 1 || callee.Differ[0] != "go" ||
		callee.External || callee.Transport != nats.Kind || callee.Subject != "agents.callee.requests" || callee.LatencyMs <= 0 ||
		callee.Instances != 2 || callee.Version != "test, v9.9.9" || callee.Digest == "" {
		t.Errorf("callee %+v", callee)
	}
	if absent.Peer != "agent://absent" || absent.State != control.PeerUnreachable || !absent.External || absent.Error == "" || absent.Instances != 0 {
		t.Errorf("absent %+v", absent)
	}
	if only := caller.VerifyPeers(t.Context(), []envelope.Address{"agent://absent"}); len(only) != 1 || only[0].Peer != "agent://absent" {
		t.Errorf("only one was to be asked: %+v", only)
	}
	// The callee has itself among its peers, and does not ask itself.
	for _, s := range startAgent(t, replicaOf(t, cfg, "v"), "callee").VerifyPeers(t.Context(), nil) {
		if s.Peer == "agent://callee" {
			t.Errorf("it asked itself: %+v", s)
		}
	}
}

// A peer that serves what the caller was built with is reachable, and so is one whose
// contract the caller does not hold.
func TestVerifyPeersAgree(t *testing.T) {
	t.Parallel()
	for name, pinned := range map[string]bool{"the same contract": true, "no contract": false} {
		t.Run(name, func(t *testing.T) {
			all := files()
			if pinned {
				all["pinned.yaml"] = all["callee/capabilities.yaml"]
				all["rpc-peers.yaml"] += "    capabilities: ./pinned.yaml\n"
			}
			cfg := load(t, all)
			cfg.Handlers = handle(echo)
			f := startFleet(t, cfg)
			defer stop(t, f)
			d, _ := f.Daemon("caller")
			got := d.VerifyPeers(t.Context(), nil)
			if len(got) != 1 || got[0].State != control.PeerReachable || got[0].Transport != "memory" || got[0].Instances != 0 || got[0].Error != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Where the broker demands credentials and none are set, an agent uses the key that
// `agentd fleet nats-config` has left for it.
func TestKeyOfNATSConfig(t *testing.T) {
	cfg := load(t, natsFiles("nats://127.0.0.1:1"))
	cfg.Handlers = handle(echo)
	rules, err := natsauth.Derive(cfg.Fleet, natsauth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keyDir := filepath.Join(cfg.Paths.State, "nats")
	keys, err := rules.EnsureKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	var conf strings.Builder
	if err := rules.WriteConfig(&conf, keys); err != nil {
		t.Fatal(err)
	}
	cfg.NATS.Servers = []string{natstest.Run(t, conf.String()).URL()}
	startAgent(t, cfg, "callee")
	if err := callGo(t, startAgent(t, cfg, "caller"), `{"n":1}`); err != nil {
		t.Error(err)
	}
	// Credentials that are set are the only ones that are tried.
	wrong := replicaOf(t, cfg, "v")
	wrong.Paths.State = cfg.Paths.State // with the key
	wrong.NATS.User, wrong.NATS.Password, wrong.NATS.Getenv = "u", "env:P", func(string) string { return "p" }
	// And without a key there is nothing to try.
	for name, cfg := range map[string]daemon.Config{"wrong credentials": wrong, "no key": replicaOf(t, cfg, "v")} {
		cfg.Fleet.Members[0].AuditDB = filepath.Join(t.TempDir(), "audit.db")
		if _, err := daemon.Start(t.Context(), cfg, "callee"); !errors.Is(err, transport.Denied) {
			t.Errorf("%s: %v, want Denied", name, err)
		}
	}
}

// A fleet in one process needs no broker, unless one is set explicitly.
func TestTransportsOfAFleetInOneProcess(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	both := func(all map[string]string) map[string]string {
		with := "{kind: nats, servers: ['nats://127.0.0.1:1'], subjects: {requests: agents.callee.requests}}, {kind: memory,"
		for _, name := range []string{"rpc-peers.yaml", "callee/capabilities.yaml"} {
			all[name] = strings.Replace(all[name], "{kind: memory,", with, 1)
		}
		return all
	}
	for name, test := range map[string]struct {
		files    map[string]string
		explicit []string
		want     string // transports, or the start's error
	}{
		"memory alone":                      {files: files(), want: "[memory]"},
		"memory reaches everybody":          {files: both(files()), want: "[memory]"},
		"servers are set":                   {files: both(files()), explicit: []string{server.URL()}, want: "[memory nats]"},
		"memory does not reach":             {files: natsFiles(server.URL()), want: "[memory nats]"},
		"memory does not reach, no broker":  {files: natsFiles("nats://127.0.0.1:1"), want: "start a server with `agentd broker`"},
		"servers are set, but none answers": {files: both(files()), explicit: []string{"nats://127.0.0.1:1"}, want: "AGENTD_NATS_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, test.files)
			cfg.Handlers, cfg.NATS.Servers, cfg.Bus = handle(echo), test.explicit, memory.NewBus(memory.Options{})
			d, err := daemon.Start(t.Context(), cfg, "callee")
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
				return
			}
			defer stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}})
			if got := "[" + strings.Join(d.Status().Transports, " ") + "]"; got != test.want {
				t.Errorf("transports %s, want %s", got, test.want)
			}
		})
	}
}

// A process connects to one NATS system. Files that name two get a warning.
func TestTwoNATSSystems(t *testing.T) {
	server := natstest.Run(t, "")
	all := natsFiles(server.URL())
	all["rpc-peers.yaml"] += "  - {agent: agent://far, transports: [{kind: nats, servers: ['nats://far.example'], subjects: {requests: far}}]}\n"
	cfg, logged := logTo(load(t, all))
	cfg.Handlers = handle(echo)
	startAgent(t, cfg, "callee")
	if text := logged(); strings.Count(text, "two NATS systems") != 1 || !strings.Contains(text, "far.example") {
		t.Errorf("logged %s", text)
	}
}

// natsConn connects as no agent does.
func natsConn(t testing.TB, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
