package daemon_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
)

// A fleet of which one member cannot start leaves none running, and no file locked.
func TestStartFleetIsAllOrNothing(t *testing.T) {
	all := files()
	all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "path: ./caller}]", "path: ./caller}, {id: broken, path: ./broken}]", 1)
	all["broken/agent.yaml"] = "name: broken\n"
	all["broken/capabilities.yaml"] = "version: 1\nagent: agent://broken\ntransports: [{kind: memory, topics: {requests: b}}]\ncapabilities: [{name: bark}]\n"
	cfg := withGo(load(t, all))
	if _, err := daemon.StartFleet(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "agent broken: ") || !strings.Contains(err.Error(), "broken/agent.yaml") {
		t.Errorf("error %v", err)
	}
	if running, err := cfg.Paths.Running(t.Context()); err != nil || len(running) != 0 {
		t.Errorf("running %v, %v", running, err)
	}
	for _, agent := range []string{"callee", "caller", "broken"} {
		log, err := auditchain.Open(t.Context(), cfg.Paths.AuditDB(agent), auditchain.Options{})
		if err != nil {
			t.Errorf("%s: %v", agent, err)
			continue
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	// Those that had started have stopped, however far they were; the one that had not has no stop.
	for agent, begins := range map[string]bool{"callee": true, "caller": true, "broken": false} {
		events := []any{}
		for _, body := range ofKind(t, cfg, agent, auditchain.KindLifecycle) {
			events = append(events, body["event"])
		}
		if text := fmt.Sprint(events); text != "[]" && (!begins || text != "[started stopped]") {
			t.Errorf("%s has recorded %v", agent, events)
		}
	}
}

func TestFleet(t *testing.T) {
	cfg := withGo(load(t, files()))
	f := startFleet(t, cfg)
	defer stop(t, f)
	if _, ok := f.Daemon("nobody"); ok {
		t.Error("found an agent that is not there")
	}
	if got := f.ShutdownTimeout(); got != 20*time.Second { // the callee's; the caller has the default
		t.Errorf("shutdown timeout %s", got)
	}
	d, _ := f.Daemon("callee")
	for _, name := range []string{"fleet.yaml", "callee/agent.yaml", "callee/capabilities.yaml", "rpc-peers.yaml"} {
		if !slices.Contains(d.Files(), filepath.Join(cfg.Fleet.Root, name)) {
			t.Errorf("%s is not among the files %v", name, d.Files())
		}
	}
	empty := load(t, map[string]string{"fleet.yaml": "version: 1\nname: empty\nagents: []\n"})
	if _, err := daemon.StartFleet(t.Context(), empty); err == nil || !strings.Contains(err.Error(), "fleet empty declares no agents") {
		t.Errorf("a fleet of nobody: %v", err)
	}
}

// Whoever stops a fleet that is stopping or has stopped waits for it, and gets the same
// answer.
func TestStopTwice(t *testing.T) {
	f := startFleet(t, withGo(load(t, files())))
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { stop(t, f) })
	}
	again := make(chan struct{})
	go func() {
		defer close(again)
		all.Wait()
		stop(t, f)
	}()
	select {
	case <-again:
	case <-time.After(time.Minute):
		t.Fatal("the second stop does not return")
	}
	if err := f.Daemons[0].Ready(); err == nil {
		t.Error("the agent is ready")
	}
}

// A socket whose process was killed is no running agent.
func TestRunningIgnoresDeadSockets(t *testing.T) {
	cfg := withGo(load(t, files()))
	if running, err := cfg.Paths.Running(t.Context()); err != nil || running != nil {
		t.Errorf("before anything ran: %v, %v", running, err)
	}
	f := startFleet(t, cfg)
	defer stop(t, f)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: cfg.Paths.Socket("dead"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as after kill -9
	if err := errors.Join(l.Close(), os.WriteFile(filepath.Join(cfg.Paths.Runtime, "notes.txt"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if running, err := cfg.Paths.Running(t.Context()); err != nil || fmt.Sprint(running) != "[callee caller]" {
		t.Errorf("running %v, %v", running, err)
	}
}

// A callee with a minimum rejects callers of an older fleet, and those that do not
// say of which they are. The reference system's variable counts too, after our own.
func TestFleetVersion(t *testing.T) {
	for name, test := range map[string]struct {
		stamp          bool
		own, reference string
		code           rpc.Code
		says           string // the start's error
	}{
		"new enough":            {stamp: true, own: "v1.3.0-cut"},
		"as old as allowed":     {stamp: true, own: "v1.2.0-cut"},
		"too old":               {stamp: true, own: "v1.1.9-cut", code: rpc.CodeVersionSkew},
		"not stamped":           {own: "v1.3.0-cut", code: rpc.CodeVersionSkew},
		"not set":               {stamp: true, code: rpc.CodeVersionSkew},
		"the reference's":       {stamp: true, reference: "v1.3.0-cut"},
		"our own comes first":   {stamp: true, own: "v1.1.9-cut", reference: "v1.3.0-cut", code: rpc.CodeVersionSkew},
		"malformed":             {stamp: true, own: "yesterday", says: "AGENTD_FLEET_VERSION: "},
		"the reference's, so":   {reference: "yesterday", says: "DECLARAGENT_FLEET_VERSION: "},
		"malformed, not in use": {stamp: true, own: "v1.3.0-cut", reference: "yesterday"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AGENTD_FLEET_VERSION", test.own)
			t.Setenv("DECLARAGENT_FLEET_VERSION", test.reference)
			all := files()
			all["fleet.yaml"] += fmt.Sprintf("rpc: {minFleetVersion: v1.2.0-cut, stampFleetVersion: %v}\n", test.stamp)
			f, err := daemon.StartFleet(t.Context(), withGo(load(t, all)))
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer stop(t, f)
			if _, err := goCall(t, f); rpc.CodeOf(err) != test.code {
				t.Errorf("%v, want %v", err, test.code)
			}
		})
	}
}

// A name that a stranger chooses does not grow the log.
func TestLongNamesAreCutInRecords(t *testing.T) {
	all := files()
	all["caller/agent.yaml"] += "permissions: {}\n"
	cfg := withGo(load(t, all))
	f := startFleet(t, cfg)
	name := strings.Repeat("x", 5000)
	_, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: name})
	if err == nil {
		t.Fatal("called")
	}
	stop(t, f)
	for _, r := range records(t, cfg, "caller") {
		if len(r.Body) > 1000 {
			t.Errorf("a record of kind %s has %d bytes", r.Kind, len(r.Body))
		}
	}
}

// Ids of approvals are UUIDs that sort by arrival, and each outcome has its own.
func TestApprovalIDs(t *testing.T) {
	cfg, f, c := startAsking(t, "60000")
	const calls = 5
	done := make(chan error, calls)
	var ids []string
	for n := range calls {
		go func() { _, err := goCall(t, f); done <- err }()
		all := waiting(t, c, n+1)
		ids = append(ids, all[n].ID) // the oldest first
		if id, err := uuid.Parse(all[n].ID); err != nil || id.Version() != 7 {
			t.Errorf("id %q: %v", all[n].ID, err)
		}
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != calls {
		t.Errorf("ids %v", ids)
	}
	for i, id := range ids {
		if err := c.Decide(t.Context(), id, control.Decision{Approve: i%2 == 0, Reason: "because"}); err != nil {
			t.Error(err)
		}
		if err := <-done; (err == nil) != (i%2 == 0) || err != nil && !strings.Contains(err.Error(), "because") {
			t.Errorf("decision %d: %v", i, err)
		}
	}
	// A part of an id decides nothing.
	go func() { _, err := goCall(t, f); done <- err }()
	last := waiting(t, c, 1)[0].ID
	if err := c.Decide(t.Context(), last[:8], control.Decision{Approve: true}); err == nil {
		t.Error("a prefix of an id decided")
	}
	if err := c.Decide(t.Context(), last, control.Decision{}); err != nil {
		t.Error(err)
	}
	<-done
	recorded := map[any]bool{}
	for _, body := range ofKind(t, cfg, "caller", auditchain.KindApproval) {
		recorded[body["approvalId"]] = true
	}
	if len(recorded) != calls+1 {
		t.Errorf("recorded %v", recorded)
	}
}
