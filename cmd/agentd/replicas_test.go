package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// A shop has a cashier of three replicas, which share what they have served, and a desk
// that calls them: each an `agentd run` of its own, with an identity, over a real broker.
type shop struct {
	dir, root string
	ledger    string // the folder of what the skills do
	server    *natstest.Server
	replicas  []*replicaProcess
	desk      *replicaProcess
}

// A replicaProcess is one process, which may be started again.
type replicaProcess struct {
	agent string
	env   []string
	member
}

// The skill book does what docs/idempotency.md asks of one that may be run again: its
// effect has the name of the idempotency key, and its answer is what the effect says. The
// others do not look at the key, so that their runs can be counted.
const shopFiles = `
-- fleet.yaml --
version: 1
name: shop
agents: [{id: cashier, path: ./cashier}, {id: desk, path: ./desk}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://cashier
    transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.cashier.requests}}]
-- desk/agent.yaml --
name: desk
breaker: off
-- book.sh --
echo "$AGENTD_IDEMPOTENCY_KEY" >>"$LEDGER/book.runs"
echo "{\"receipt\":\"$$ $AGENTD_MESSAGE_ID\"}" >"$LEDGER/new.$$"
ln "$LEDGER/new.$$" "$LEDGER/booked/$AGENTD_IDEMPOTENCY_KEY" 2>/dev/null
cat "$LEDGER/booked/$AGENTD_IDEMPOTENCY_KEY"
-- enter.sh --
echo "$AGENTD_IDEMPOTENCY_KEY" >>"$LEDGER/entered"
echo "{\"receipt\":\"$$ $AGENTD_MESSAGE_ID\"}"
-- cashier/agent.yaml --
name: cashier
security: {requireAuth: true}
STORE
skills:
  book: {process: {command: [sh, book.sh], env: {LEDGER: "FOLDER"}}, sandbox: {write: ["FOLDER"]}}
  enter: {process: {command: [sh, enter.sh], env: {LEDGER: "FOLDER"}}, sandbox: {write: ["FOLDER"]}}
-- cashier/capabilities.yaml --
version: 1
agent: agent://cashier
transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.cashier.requests}}]
capabilities:
  - {name: book, idempotent: true, timeoutMs: 2000, retryPolicy: {maxAttempts: 100, initialDelayMs: 20, maxDelayMs: 200, backoffMultiplier: 2}}
  - {name: enter, timeoutMs: 2000, retryPolicy: {maxAttempts: 100, initialDelayMs: 20, maxDelayMs: 200, backoffMultiplier: 2}}
  - {name: enter-slowly, skill: enter, timeoutMs: 60000}
`

func openShop(t *testing.T, store string) *shop {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &shop{dir: dir, root: filepath.Join(dir, "fleet"), ledger: filepath.Join(dir, "ledger"), server: natstest.Run(t, "jetstream {}\n")}
	text := strings.NewReplacer("SERVER", s.server.URL(), "STORE", store, "FOLDER", s.ledger).Replace(shopFiles)
	for _, file := range strings.Split(text, "\n-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		path := filepath.Join(s.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(s.ledger, "booked"), 0o700); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys")
	publish := exec.Command("agentd", "identity", "publish", "-C", s.root)
	publish.Env = append(os.Environ(), "XDG_STATE_HOME="+keys)
	if out, err := publish.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range 4 {
		state := filepath.Join(dir, strconv.Itoa(i))
		if out, err := exec.Command("cp", "-a", keys, state).CombinedOutput(); err != nil { // replicas have one key
			t.Fatalf("%v: %s", err, out)
		}
		p := &replicaProcess{agent: "cashier", env: append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_RUNTIME_DIR="+filepath.Join(state, "r"))}
		if i == 3 {
			p.agent, s.desk = "desk", p
		} else {
			s.replicas = append(s.replicas, p)
		}
		s.start(t, p)
	}
	for _, p := range append([]*replicaProcess{s.desk}, s.replicas...) {
		s.awaitReady(t, p)
	}
	return s
}

// start starts a process, again if it has ended.
func (s *shop) start(t *testing.T, p *replicaProcess) {
	t.Helper()
	f, err := fleet.Load(s.root, fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := daemon.DefaultPaths(f.Name, f.Root, func(name string) (value string) {
		for _, v := range p.env { // the last one counts
			if after, ok := strings.CutPrefix(v, name+"="); ok {
				value = after
			}
		}
		return value
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("agentd", "run", "--fleet", s.root, "--agent", p.agent, "--log-format", "json")
	cmd.Env = p.env
	p.member = member{Client: control.NewClient(paths.Socket(p.agent)), log: start(t, cmd)}
	t.Cleanup(p.Close)
}

func (s *shop) awaitReady(t *testing.T, p *replicaProcess) {
	t.Helper()
	client := p.Client
	eventually.Holds(t, p.agent+" is ready", func() bool {
		select {
		case err := <-p.log.ended:
			t.Fatalf("%s ended with %v: %s", p.agent, err, p.log)
		default:
		}
		return client.Ready(t.Context()) == nil
	})
}

// end ends a process with a signal, and waits for it.
func (s *shop) end(t *testing.T, p *replicaProcess, signal os.Signal) {
	t.Helper()
	if err := p.log.process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := <-p.log.ended; err != nil && signal != syscall.SIGKILL {
		t.Errorf("a replica ended with %v: %s", err, p.log)
	}
	p.log.ended <- nil // for whoever checks whether it has ended
}

// A keyedCall is a call with a key of its own, which its caller repeats until it has an
// answer.
type keyedCall struct {
	capability, key string
	result          *rpc.Result
}

func (s *shop) call(t *testing.T, capability, key string) *keyedCall {
	result, err := s.desk.RequestAgent(t.Context(), rpc.Request{
		To: "agent://cashier", Capability: capability, Payload: json.RawMessage(`{}`), IdempotencyKey: key, Timeout: 5 * time.Minute, // machines may be busy
	})
	if err != nil {
		t.Errorf("%s: %v", key, err)
		result = &rpc.Result{Error: rpc.NewError(rpc.CodeInternal, err, "%s", err)}
	}
	return &keyedCall{capability, key, result}
}

// during makes calls until at least so many are made and disturb has returned. done is the
// number of those that have ended.
func (s *shop) during(t *testing.T, calls int, capabilities []string, disturb func(done func() int)) []*keyedCall {
	t.Helper()
	const callers = 16
	var mu sync.Mutex
	var made []*keyedCall
	var next atomic.Int64
	var disturbed atomic.Bool
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= calls && disturbed.Load() || t.Failed() {
					return
				}
				capability := capabilities[n%len(capabilities)]
				c := s.call(t, capability, fmt.Sprintf("%s-%d-%d", capability, calls, n))
				mu.Lock()
				made = append(made, c)
				mu.Unlock()
			}
		})
	}
	disturb(func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(made)
	})
	disturbed.Store(true)
	all.Wait()
	return made
}

// entries counts the lines of a file of the ledger.
func (s *shop) entries(t *testing.T, file string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.ledger, file))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(data)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// chaosCalls is how many calls the test of chaos makes: a few, or as many as the
// environment says.
func chaosCalls(t *testing.T) int {
	n := 90
	if text := os.Getenv("AGENTD_CHAOS_CALLS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// Replicas are killed at random while they are called. A call that may run again gets its
// answer, and its effect is there once; one that may not has run once at most, and its
// caller knows, or knows that nobody does. What was answered stays so, at every replica.
// Replicas that are stopped, and not killed, fail no call at all.
func TestReplicasAreKilled(t *testing.T) {
	t.Parallel()
	s := openShop(t, "idempotency: {store: shared, leaseMs: 1000}")
	calls, kills := chaosCalls(t), 0
	least := max(3, calls/100)
	made := s.during(t, calls, []string{"book", "book", "enter"}, func(done func() int) {
		for ; kills < least && !t.Failed(); kills++ {
			eventually.Holds(t, "calls are made", func() bool { return done() >= (kills+1)*calls/(least+1) || t.Failed() })
			p := s.replicas[rand.IntN(len(s.replicas))]
			s.end(t, p, syscall.SIGKILL)
			s.start(t, p)
			s.awaitReady(t, p)
		}
	})
	runs, entered := s.entries(t, "book.runs"), s.entries(t, "entered")
	var books, again, enters, unknown, doubled, lost int
	for _, c := range made {
		switch {
		case c.capability == "book":
			books++
			again += runs[c.key] - 1
			effect, err := os.ReadFile(filepath.Join(s.ledger, "booked", c.key))
			if err != nil || c.result.Error != nil || strings.TrimSpace(string(effect)) != string(c.result.Response) {
				lost++
				t.Errorf("%s: %+v, and its effect is %s (%v)", c.key, c.result.Error, effect, err)
			}
		case c.result.Error == nil:
			enters++
			if entered[c.key] == 0 {
				lost++
				t.Errorf("%s was answered and has not run", c.key)
			}
		case c.result.Error.Code == rpc.CodeOutcomeUnknown && !c.result.Error.Retryable:
			enters++
			unknown++
		default:
			lost++
			t.Errorf("%s: %+v", c.key, c.result.Error)
		}
		if c.capability == "enter" && entered[c.key] > 1 {
			doubled++
			t.Errorf("%s ran %d times", c.key, entered[c.key])
		}
	}
	t.Logf("%d kills; %d calls that may run again: %d more runs; %d that may not: %d of unknown outcome; lost %d, doubled %d",
		kills, books, again, enters, unknown, lost, doubled)
	s.repeat(t, made)
	if after := s.entries(t, "book.runs"); len(after) != len(runs) || total(after) != total(runs) || total(s.entries(t, "entered")) != total(entered) {
		t.Error("a call that was repeated ran again")
	}
	s.restart(t, calls/3)
}

func total(lines map[string]int) (n int) {
	for _, count := range lines {
		n += count
	}
	return n
}

// repeat makes all calls again, which changes nothing.
func (s *shop) repeat(t *testing.T, made []*keyedCall) {
	t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for n := next.Add(1); n <= int64(len(made)); n = next.Add(1) {
				first := made[n-1]
				got := s.call(t, first.capability, first.key).result
				switch {
				case first.result.Error == nil && (got.Error != nil || string(got.Response) != string(first.result.Response) || !got.Replayed):
					t.Errorf("%s: first %s, then %s (%+v, replayed %v)", first.key, first.result.Response, got.Response, got.Error, got.Replayed)
				// A replica that ended between the two may have stored what it knew.
				case first.result.Error != nil && got.Error != nil && got.Error.Code != first.result.Error.Code:
					t.Errorf("%s: first %v, then %v", first.key, first.result.Error, got.Error)
				}
			}
		})
	}
	all.Wait()
}

// restart stops and starts one replica after the other, while they are called.
func (s *shop) restart(t *testing.T, calls int) {
	t.Helper()
	made := s.during(t, calls, []string{"book", "enter-slowly"}, func(func() int) {
		for _, p := range s.replicas {
			s.end(t, p, syscall.SIGTERM)
			s.start(t, p)
			s.awaitReady(t, p)
		}
	})
	entered := s.entries(t, "entered")
	failed := 0
	for _, c := range made {
		if c.result.Error != nil || c.capability == "enter-slowly" && entered[c.key] != 1 {
			failed++
			t.Errorf("%s, while replicas are restarted: %+v", c.key, c.result.Error)
		}
	}
	t.Logf("%d calls while all replicas were restarted, %d failed", len(made), failed)
}

// A message that somebody has captured on the broker runs nothing more, whichever replica
// gets it, and also after a restart.
func TestCapturedMessage(t *testing.T) {
	t.Parallel()
	s := openShop(t, "idempotency: {store: shared}")
	spy, err := natsgo.Connect(s.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(spy.Close)
	captured := make(chan *natsgo.Msg, 1)
	subscription, err := spy.Subscribe("agents.cashier.requests", func(m *natsgo.Msg) { captured <- m })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(subscription.AutoUnsubscribe(1), spy.Flush()); err != nil {
		t.Fatal(err)
	}
	if c := s.call(t, "enter", ""); c.result.Error != nil {
		t.Fatalf("%+v", c.result.Error)
	}
	message := <-captured
	// Few enough for each to have a line in the log of a replica.
	const copies = 4
	send := func(total int) {
		for range copies {
			if err := spy.Publish(message.Subject, message.Data); err != nil {
				t.Fatal(err)
			}
		}
		eventually.Holds(t, "all copies are dropped", func() bool {
			dropped := 0
			for _, p := range s.replicas {
				dropped += strings.Count(p.log.String(), "message dropped: it does not prove its sender")
			}
			return dropped == total
		})
	}
	send(copies)
	for _, p := range s.replicas {
		s.end(t, p, syscall.SIGTERM)
		s.start(t, p)
		s.awaitReady(t, p)
	}
	send(copies)
	if runs := total(s.entries(t, "entered")); runs != 1 {
		t.Errorf("the message ran %d times", runs)
	}
}
