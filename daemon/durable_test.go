package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats/durable"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// durableFiles is the fleet of natsFiles, with one attempt for each request to go.
func durableFiles(server string) map[string]string {
	all := natsFiles(server)
	all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "- name: go\n", "- name: go\n    delivery: durable\n", 1)
	all["callee/agent.yaml"] += "durable: {ackWaitMs: 5000, maxDeliver: 1}\n"
	return all
}

// deadLetters waits until an agent has n dead letters.
func deadLetters(t *testing.T, d *daemon.Daemon, n int) (all []control.Letter) {
	t.Helper()
	// The broker has no event for it.
	eventually.Holds(t, fmt.Sprint(n, " dead letters"), func() bool {
		var err error
		if all, err = d.Letters(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(all) == n
	})
	return all
}

// A request that could not be served can be looked at, served again and dropped, and
// each change is recorded with who made it.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	cfg := load(t, durableFiles(server.URL()))
	var mended atomic.Bool
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if !mended.Load() {
			return nil, &rpc.SkillError{Message: "not yet", Retryable: true}
		}
		return inv.Payload, nil
	})
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	if all, err := callee.Letters(t.Context()); err != nil || all == nil || len(all) != 0 {
		t.Errorf("before any call: %v, %v; want an empty list", all, err)
	}
	async := func() *rpc.Result {
		t.Helper()
		result, err := caller.Client().RequestAgent(t.Context(), rpc.Request{
			To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Mode: rpc.ModeAsync, Timeout: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	first := async()
	letter := deadLetters(t, callee, 1)[0]
	if letter.From != "agent://caller" || letter.Capability != "go" || letter.CorrelationID != first.CorrelationID || letter.Attempts != 1 ||
		letter.Deadline <= time.Now().UnixMilli() || letter.Bytes == 0 || letter.Body != nil || !strings.Contains(letter.Reason, "HANDLER_ERROR") {
		t.Errorf("listed %+v", letter)
	}
	shown, err := callee.Letter(t.Context(), letter.Number)
	if err != nil || len(shown.Body) != letter.Bytes || !strings.Contains(string(shown.Body), `"payload":{"n":1}`) {
		t.Errorf("shown %+v, %v", shown, err)
	}

	mended.Store(true)
	if _, err := callee.Redrive(t.Context(), letter.Number, "ada"); err != nil {
		t.Fatal(err)
	}
	if result := caller.Await(t.Context(), first.CorrelationID); result.Status != rpc.StatusOK || string(result.Response) != `{"n":1}` {
		t.Errorf("served again: %+v", result)
	}
	deadLetters(t, callee, 0)

	mended.Store(false)
	second := async()
	letter = deadLetters(t, callee, 1)[0]
	if dropped, err := callee.Drop(t.Context(), letter.Number, "ada"); err != nil || dropped.CorrelationID != second.CorrelationID {
		t.Errorf("dropped %+v, %v", dropped, err)
	}
	deadLetters(t, callee, 0)
	for name, change := range map[string]func(context.Context, uint64, string) (control.Letter, error){"redrive": callee.Redrive, "drop": callee.Drop} {
		if _, err := change(t.Context(), letter.Number, "ada"); !errors.Is(err, durable.ErrNoLetter) {
			t.Errorf("%s of a letter that is gone: %v", name, err)
		}
	}
	if _, err := callee.Letter(t.Context(), letter.Number); !errors.Is(err, durable.ErrNoLetter) {
		t.Errorf("a letter that is gone: %v", err)
	}

	var events []any
	for _, body := range ofKind(t, cfg, "callee", auditchain.KindLifecycle) {
		if actor, ok := body["actor"].(map[string]any); ok && actor["pid"] == float64(os.Getpid()) && body["by"] == "ada" && body["peerId"] == "agent://caller" && body["capabilityName"] == "go" {
			events = append(events, body["event"], body["correlationId"])
		}
	}
	want := []any{"dead-letter-redriven", first.CorrelationID, "dead-letter-dropped", second.CorrelationID}
	if len(events) != len(want) {
		t.Fatalf("recorded %v, want %v", events, want)
	}
	for i := range want {
		if events[i] != want[i] {
			t.Errorf("recorded %v, want %v", events, want)
		}
	}
}

// What is no request at all is a dead letter too. It is shown as a string, and can be
// dropped but not served.
func TestDeadLetterThatIsNoRequest(t *testing.T) {
	server := natstest.Run(t, "jetstream {}")
	cfg := load(t, durableFiles(server.URL()))
	cfg.Handlers = handle(echo)
	callee := startAgent(t, cfg, "callee")
	js, err := natsConn(t, server.URL()).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), natsauth.RequestsSubject("agents.callee.requests"), []byte("\x00 no JSON")); err != nil {
		t.Fatal(err)
	}
	letter := deadLetters(t, callee, 1)[0]
	if letter.From != "" || letter.Capability != "" || letter.Bytes != 9 {
		t.Errorf("listed %+v", letter)
	}
	shown, err := callee.Letter(t.Context(), letter.Number)
	var text string
	if err != nil || json.Unmarshal(shown.Body, &text) != nil || text != "\x00 no JSON" {
		t.Errorf("shown %+v, %v", shown, err)
	}
	if _, err := callee.Redrive(t.Context(), letter.Number, "ada"); !errors.Is(err, durable.ErrNoRequest) {
		t.Errorf("redrive: %v", err)
	}
	if _, err := callee.Drop(t.Context(), letter.Number, "ada"); err != nil {
		t.Error(err)
	}
}

// An agent that keeps no requests says so, and a stopping one that it stops.
func TestNoDeadLetters(t *testing.T) {
	server := natstest.Run(t, "jetstream {}")
	for name, all := range map[string]map[string]string{"not durable": natsFiles(server.URL()), "not on NATS": files()} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, all)
			cfg.Handlers = handle(echo)
			f := startFleet(t, cfg)
			d, _ := f.Daemon("callee")
			if _, err := d.Letters(t.Context()); err == nil || !strings.Contains(err.Error(), "agent://callee keeps no requests") {
				t.Errorf("while it runs: %v", err)
			}
			stop(t, f)
			for _, err := range []error{
				second(d.Letters(t.Context())), second(d.Letter(t.Context(), 1)), second(d.Drop(t.Context(), 1, "ada")),
			} {
				if err == nil || !strings.Contains(err.Error(), "starting or stopping") {
					t.Errorf("after its end: %v", err)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A broker without JetStream keeps nothing: the agent does not start as if it did.
func TestDurableNeedsJetStream(t *testing.T) {
	cfg := load(t, durableFiles(natstest.Run(t, "").URL()))
	cfg.Handlers = handle(echo)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if d, err := daemon.Start(ctx, cfg, "callee"); err == nil || !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("started %v, %v", d, err)
	}
}

// Where names on the broker carry the fleet's, an agent that joins a running fleet gets
// the answers to its durable calls, and its own are found, once the others have reloaded
// their files.
func TestDurableCallsOfNewMembers(t *testing.T) {
	t.Parallel()
	const both = "agents: [{id: callee, path: ./callee}, {id: caller, path: ./caller}]"
	for first, alone := range map[string]string{
		"callee": "agents: [{id: callee, path: ./callee}]",
		"caller": "agents: [{id: caller, path: ./caller}]",
	} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			server := natstest.Run(t, "jetstream {}")
			all := durableFiles(server.URL())
			for name := range all {
				all[name] = strings.ReplaceAll(all[name], "agents.callee.requests", "t.callee.requests")
			}
			joined := strings.Replace(all["fleet.yaml"], "name: t\n", "name: t\nbroker: {names: fleet}\n", 1)
			all["fleet.yaml"] = strings.Replace(joined, both, alone, 1)
			cfg := load(t, all)
			cfg.Handlers = handle(echo)
			agents := map[string]*daemon.Daemon{first: startAgent(t, cfg, first)}

			root := cfg.Fleet.Root
			if err := os.WriteFile(filepath.Join(root, "fleet.yaml"), []byte(joined), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := agents[first].Reload(); err != nil {
				t.Fatal(err)
			}
			var err error
			if cfg.Fleet, err = fleet.Load(root, fleet.LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			second := map[string]string{"callee": "caller", "caller": "callee"}[first]
			agents[second] = startAgent(t, cfg, second)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			result, err := agents["caller"].Client().RequestAgent(ctx, rpc.Request{
				To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Mode: rpc.ModeAsync, Timeout: time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			if answer := agents["caller"].Await(ctx, result.CorrelationID); answer.Status != rpc.StatusOK || string(answer.Response) != `{"n":1}` {
				t.Errorf("%+v", answer)
			}
		})
	}
}
