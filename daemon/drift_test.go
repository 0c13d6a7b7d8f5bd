package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Contracts of the capability go, held against the one of files.
const (
	goSchema = "inputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}"
	// goBroken takes nothing that a caller of go sends.
	goBroken = "inputSchema: {type: object, properties: {n: {type: integer}, m: {type: string}}, required: [n, m]}"
)

// pinnedFiles is the fleet of files on NATS, whose caller was built against a copy of
// the callee's file.
func pinnedFiles(server string) map[string]string {
	all := natsFiles(server)
	all["pinned.yaml"] = all["callee/capabilities.yaml"]
	all["rpc-peers.yaml"] += "    capabilities: ./pinned.yaml\n"
	return all
}

// within5s calls until a call succeeds, and fails the test after 5 s.
func within5s(t *testing.T, what string, caller *daemon.Daemon) {
	t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
		var res *rpc.Result
		if res, err = callGoResult(t, caller); err == nil {
			if res.Unproven != "" {
				t.Errorf("%s: it went on unproven: %s", what, res.Unproven)
			}
			return
		}
		if rpc.CodeOf(err) != rpc.CodeSchemaDrift {
			break
		}
	}
	t.Errorf("%s: still refused after 5 s: %v", what, err)
}

func callGoResult(t testing.TB, d *daemon.Daemon) (*rpc.Result, error) {
	t.Helper()
	return d.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), SessionID: "s-1"})
}

// Whatever a call was refused for, it is made soon after the callee has been mended,
// without a restart of either side.
func TestDriftHealsWithTheCallee(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	for name, test := range map[string]struct {
		least          string
		before, mended func(file string) string // the callee's capabilities.yaml
		says           string
	}{
		"a capability is added": {
			before: func(file string) string { return strings.Replace(file, "- name: go\n    "+goSchema+"\n", "", 1) },
			says:   "no longer offers it",
		},
		"a breaking contract is rolled back": {
			before: func(file string) string { return strings.Replace(file, goSchema, goBroken, 1) },
			says:   `counterexample: {"n":0`,
		},
		"since is raised": {
			least:  "2.0",
			before: func(file string) string { return strings.Replace(file, goSchema, goSchema+"\n    since: '1.9'", 1) },
			mended: func(file string) string { return strings.Replace(file, goSchema, goSchema+"\n    since: '2.0'", 1) },
			says:   "the peer has 1.9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := pinnedFiles(server.URL())
			// A subject of its own for each case: they share a broker.
			subject := strings.ReplaceAll(name, " ", "-")
			for file, text := range all {
				all[file] = strings.ReplaceAll(text, "agents.callee.requests", "agents."+subject)
			}
			if test.least != "" {
				all["rpc-peers.yaml"] += "    minSchemaVersion: '" + test.least + "'\n"
			}
			good := all["callee/capabilities.yaml"]
			all["callee/capabilities.yaml"] = test.before(good)
			if test.mended != nil {
				good = test.mended(good)
			}
			cfg := load(t, all)
			cfg.Handlers = handle(echo)
			callee := startAgent(t, cfg, "callee")
			callerCfg, logged := logTo(cfg)
			caller := startAgent(t, callerCfg, "caller")
			res, err := callGoResult(t, caller)
			if rpc.CodeOf(err) != rpc.CodeSchemaDrift || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%v, want %q", err, test.says)
			}
			if s := caller.Status(); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "calls are refused since") {
				t.Errorf("warnings %q", s.Warnings)
			}
			drifts := ofKind(t, cfg, "caller", auditchain.KindSchemaDrift)
			if len(drifts) != 1 || drifts[0]["correlationId"] != res.CorrelationID || drifts[0]["sessionId"] != "s-1" || len(drifts[0]["traceId"].(string)) != 32 {
				t.Errorf("drift records %v", drifts)
			}
			rewrite(t, cfg, "callee/capabilities.yaml", good)
			if err := callee.Reload(); err != nil {
				t.Fatal(err)
			}
			within5s(t, name, caller)
			if s := caller.Status(); len(s.Warnings) != 0 {
				t.Errorf("warnings %q", s.Warnings)
			}
			if text := logged(); strings.Count(text, "the contracts disagree") != 1 || strings.Count(text, "the contracts no longer disagree") != 1 {
				t.Errorf("logged %s", text)
			}
		})
	}
}

// The caller's own files heal it at once: a lowered minSchemaVersion, a new pin, the
// drift mode.
func TestDriftHealsWithTheCaller(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	all := pinnedFiles(server.URL())
	peers, pinned := all["rpc-peers.yaml"], all["pinned.yaml"]
	all["callee/capabilities.yaml"] = strings.Replace(pinned, goSchema, goSchema+"\n    since: '1.9'", 1)
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	startAgent(t, cfg, "callee")
	caller := startAgent(t, cfg, "caller")
	for i, step := range []struct {
		file, text string
		code       rpc.Code
		unproven   bool
	}{
		{"rpc-peers.yaml", peers + "    minSchemaVersion: '2'\n", rpc.CodeSchemaDrift, false},
		{"rpc-peers.yaml", peers + "    minSchemaVersion: '1.9'\n", 0, false},
		{"pinned.yaml", strings.Replace(pinned, "required: [n]", "required: []", 1), rpc.CodeSchemaDrift, false},
		{"caller/agent.yaml", "name: caller\ndrift: warn\n", 0, true},
		{"caller/agent.yaml", "name: caller\ndrift: enforce\n", rpc.CodeSchemaDrift, false},
		{"caller/agent.yaml", "name: caller\ndrift: 'off'\n", 0, false},
		{"caller/agent.yaml", "name: caller\n", rpc.CodeSchemaDrift, false},
		{"pinned.yaml", pinned, 0, false},
	} {
		rewrite(t, cfg, step.file, step.text)
		if err := caller.Reload(); err != nil {
			t.Fatal(err)
		}
		if res, err := callGoResult(t, caller); rpc.CodeOf(err) != step.code || (res.Unproven != "") != step.unproven {
			t.Errorf("step %d, %s: %v, unproven: %q", i, step.text, err, res.Unproven)
		}
	}
	// Records of calls that went on unproven say so.
	eventually.Holds(t, "the access log has the call that was let go on", func() bool {
		unproven := 0
		for _, body := range ofKind(t, cfg, "caller", auditchain.KindRPCCall) {
			if body["unproven"] == true && strings.Contains(body["unprovenReason"].(string), "counterexample") {
				unproven++
			}
		}
		return unproven == 1
	})
}

// A fleet's peers --verify shows drift with its witness, what replicas differ in, and
// what is offered beyond the agent's copy; afterwards calls go by what it has found.
func TestVerifyPeersProves(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	all := pinnedFiles(server.URL())
	pinned := all["pinned.yaml"]
	all["callee/capabilities.yaml"] = pinned + "  - {name: dog, skill: cat}\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	startAgent(t, cfg, "callee")
	caller := startAgent(t, cfg, "caller")
	verify := func() control.PeerStatus {
		t.Helper()
		found := caller.VerifyPeers(t.Context(), nil)
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		return found[0]
	}
	// Something more is offered, and nothing has drifted.
	if s := verify(); s.State != control.PeerReachable || s.Drifts != nil || fmt.Sprint(s.Unusable) != "[dog]" || s.Contracts != nil {
		t.Errorf("%+v", s)
	}
	// Another fleet on the same broker has an agent of this name: it is no replica.
	foreign := load(t, func() map[string]string {
		all := maps.Clone(all)
		all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "name: t", "name: other", 1)
		all["callee/capabilities.yaml"] = strings.ReplaceAll(pinned, "agents.callee.requests", "other.callee.requests")
		return all
	}())
	foreign.Handlers = handle(echo)
	startAgent(t, foreign, "callee")
	// Nobody knows how many replicas there are: one that is slow to answer is left out.
	eventually.Succeeds(t, "the one replica is met beside another fleet", func() error {
		if s := verify(); s.Instances != 1 || s.Contracts != nil {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	odd := load(t, func() map[string]string {
		all := maps.Clone(all)
		all["callee/capabilities.yaml"] = strings.Replace(pinned, goSchema, goBroken, 1)
		return all
	}())
	odd.Handlers = handle(echo)
	replica := startAgent(t, odd, "callee")
	eventually.Succeeds(t, "both replicas are met, and the odd one is found", func() error {
		s := verify()
		if s.State != control.PeerDrifted || fmt.Sprint(s.Differ) != "[go]" || len(s.Contracts) != 2 || s.Instances != 2 || len(s.Drifts) != 1 ||
			!strings.Contains(s.Drifts[0].Reason, "counterexample") || !strings.Contains(string(s.Drifts[0].Details), `"witness":{"n":0`) {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	rewrite(t, odd, "callee/capabilities.yaml", all["callee/capabilities.yaml"])
	if err := replica.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := verify(); s.State != control.PeerReachable || s.Drifts != nil || s.Contracts != nil {
		t.Errorf("mended: %+v", s)
	}
	if _, err := callGoResult(t, caller); err != nil {
		t.Errorf("after the verification: %v", err)
	}
}

// One replica of three serves something else: nearly all calls are served by the
// others, none is lost, and all are served once it has been mended.
func TestOneOddReplicaOfThree(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	all := pinnedFiles(server.URL())
	good := all["callee/capabilities.yaml"]
	var replicas [3]*daemon.Daemon
	var cfgs [3]daemon.Config
	for i := range replicas {
		cfgs[i] = load(t, all)
		cfgs[i].Handlers = handle(echo)
		replicas[i] = startAgent(t, cfgs[i], "callee")
	}
	caller := startAgent(t, load(t, all), "caller")
	calls := func(n int) map[rpc.Code]int {
		counts := map[rpc.Code]int{}
		for range n {
			_, err := callGoResult(t, caller)
			counts[rpc.CodeOf(err)]++
		}
		return counts
	}
	reload := func(file string) {
		t.Helper()
		rewrite(t, cfgs[1], "callee/capabilities.yaml", file)
		if err := replicas[1].Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if counts := calls(20); counts[0] != 20 {
		t.Errorf("before: %v", counts)
	}
	reload(strings.Replace(good, goSchema, goBroken, 1))
	// On average one call in eighty meets the odd replica four times.
	if counts := calls(300); counts[0] < 240 || counts[0]+counts[rpc.CodeSchemaDrift] != 300 {
		t.Errorf("one of three is odd: %v", counts)
	}
	reload(good)
	within5s(t, "mended", caller)
	if counts := calls(100); counts[0] != 100 {
		t.Errorf("mended: %v", counts)
	}
}

// A contract that breaks the caller is rolled out over three replicas and back, by
// restarts, under 200 calls a second. Every call ends in the truth of the moment, and
// once the last replica is back all are served.
func TestRollingDeployOfABreakingContract(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	good := pinnedFiles(server.URL())
	broken := maps.Clone(good)
	broken["callee/capabilities.yaml"] = strings.Replace(good["callee/capabilities.yaml"], goSchema, goBroken, 1)
	run := func(files map[string]string) *daemon.Daemon {
		t.Helper()
		cfg := load(t, files)
		cfg.Handlers = handle(echo)
		d, err := daemon.Start(t.Context(), cfg, "callee")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var replicas [3]*daemon.Daemon
	for i := range replicas {
		replicas[i] = run(good)
	}
	defer func() { stop(t, &daemon.Fleet{Daemons: replicas[:]}) }()
	caller := startAgent(t, load(t, good), "caller")
	calls := startTraffic(t, caller)
	deploy := func(files map[string]string) {
		for i := range replicas {
			fresh := run(files) // first the new one, as orchestrators do
			stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{replicas[i]}})
			replicas[i] = fresh
			calls.next(t, 40)
		}
	}
	before := calls.next(t, 20)
	deploy(broken)
	calls.untilAll(t, rpc.CodeSchemaDrift.String()) // the caller sees with a delay that nobody serves it any more
	during := calls.next(t, 40)
	deploy(good)
	mended := time.Now()
	calls.untilAll(t, "")
	took := time.Since(mended)
	after := calls.next(t, 100)
	all := calls.stop()
	served, drifted := all[""], all[rpc.CodeSchemaDrift.String()]
	if before[""] == 0 || len(before) != 1 || during[""] != 0 || len(during) != 1 || after[""] == 0 || len(after) != 1 {
		t.Errorf("before %v, when all replicas were broken %v, after %v", before, during, after)
	}
	if served == 0 || drifted == 0 || len(all) != 2 {
		t.Errorf("calls ended otherwise than served or refused as drifted: %v", all)
	}
	t.Logf("%v; all served %s after the last replica was back", all, took.Round(time.Millisecond))
}

// Traffic is 200 calls a second, and what becomes of them by code; "" is success.
type traffic struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu         sync.Mutex
	since, all map[string]int
	lastOther  map[string]time.Time // by code: when the last call began that ended otherwise
}

func startTraffic(t *testing.T, caller *daemon.Daemon) *traffic {
	ctx, cancel := context.WithCancel(t.Context())
	l := &traffic{cancel: cancel, since: map[string]int{}, all: map[string]int{}, lastOther: map[string]time.Time{}}
	l.done.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.done.Go(func() { l.call(t, caller) })
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { l.stop() })
	return l
}

func (l *traffic) call(t *testing.T, caller *daemon.Daemon) {
	begun := time.Now()
	res, err := caller.Client().RequestAgent(context.Background(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
	code := ""
	var e *rpc.Error
	if errors.As(err, &e) {
		code = e.CodeText()
	} else if string(res.Response) != `{"n":1}` || res.Unproven != "" {
		t.Errorf("answered %s, unproven: %q", res.Response, res.Unproven)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since[code]++
	l.all[code]++
	for _, other := range []string{"", rpc.CodeSchemaDrift.String()} {
		if other != code && begun.After(l.lastOther[other]) {
			l.lastOther[other] = begun
		}
	}
	if code != "" && code != rpc.CodeSchemaDrift.String() {
		t.Logf("%v", err)
	}
}

// next waits until n more calls have ended, and returns what became of them.
func (l *traffic) next(t *testing.T, n int) (since map[string]int) {
	t.Helper()
	l.mu.Lock()
	l.since = map[string]int{}
	l.mu.Unlock()
	eventually.Succeeds(t, "the calls end", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if since = maps.Clone(l.since); sum(since) < n {
			return fmt.Errorf("%v have ended, want %d", since, n)
		}
		return nil
	})
	return since
}

// untilAll waits until the calls of half a second have all ended with the code.
func (l *traffic) untilAll(t *testing.T, code string) {
	t.Helper()
	eventually.Succeeds(t, "all calls end in one way", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if since := time.Since(l.lastOther[code]); since < 500*time.Millisecond {
			return fmt.Errorf("one ended otherwise than with %q %s ago", code, since)
		}
		return nil
	})
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (l *traffic) stop() map[string]int {
	l.cancel()
	l.done.Wait()
	return l.all
}

// A peer of another make that takes requests and publishes nothing is reachable; calls to
// it are not checked, or go on unproven where this agent holds a contract of it.
func TestPeerThatPublishesNothing(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	cfg := load(t, pinnedFiles(server.URL()))
	conn := natsConn(t, server.URL())
	if _, err := conn.Subscribe("agents.callee.requests", "", func(m transport.Message) {
		request, err := envelope.Decode(m.Data)
		if err != nil {
			t.Errorf("request: %v", err)
			return
		}
		payload := `{"ok":true,"data":{"n":1}}`
		if request.Capability != "go" {
			payload = `{"ok":false,"error":{"code":"ENOCAPABILITY","message":"what is that?"}}`
		}
		reply := envelope.Envelope{
			Kind: envelope.Response, MessageID: "r", CorrelationID: request.CorrelationID, From: "agent://callee", To: request.From,
			Capability: request.Capability, Payload: json.RawMessage(payload),
		}
		data, err := reply.Encode()
		if err == nil {
			err = conn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
		}
		if err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	caller := startAgent(t, cfg, "caller")
	if res, err := callGoResult(t, caller); err != nil || !strings.Contains(res.Unproven, "does not say what it serves") {
		t.Errorf("%v, unproven: %q", err, res.Unproven)
	}
	if s := caller.Status(); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "calls of go go on unproven since") {
		t.Errorf("warnings %q", s.Warnings)
	}
	found := caller.VerifyPeers(t.Context(), nil)
	if len(found) != 1 || found[0].State != control.PeerReachable || !found[0].NoContract || found[0].Error != "" {
		t.Errorf("%+v", found)
	}
}

// On a broker whose permissions are older than announcements, agents start and call
// each other; that changes are not heard is said once.
func TestBrokerThatForbidsAnnouncements(t *testing.T) {
	t.Parallel()
	cfg := load(t, natsFiles("nats://127.0.0.1:1"))
	cfg.Handlers = handle(echo)
	rules, err := natsauth.Derive(cfg.Fleet, natsauth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := rules.EnsureKeys(filepath.Join(cfg.Paths.State, "nats"))
	if err != nil {
		t.Fatal(err)
	}
	var conf strings.Builder
	if err := rules.WriteConfig(&conf, keys); err != nil {
		t.Fatal(err)
	}
	cfg.NATS.Servers = []string{natstest.Run(t, strings.ReplaceAll(conf.String(), "agentd.changed.", "agentd.other.")).URL()}
	startAgent(t, cfg, "callee")
	callerCfg, logged := logTo(cfg)
	caller := startAgent(t, callerCfg, "caller")
	if _, err := callGoResult(t, caller); err != nil {
		t.Error(err)
	}
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	if text := logged(); strings.Count(text, "contracts are not heard at once") != 1 {
		t.Errorf("logged %s", text)
	}
}
