package daemon_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
)

// shared are files whose callee shares with its replicas what it has served.
func shared(files map[string]string) map[string]string {
	files["callee/agent.yaml"] += "idempotency: {store: shared}\n"
	return files
}

func keyedCall(t *testing.T, c *caller.Client, key string) *rpc.Result {
	t.Helper()
	result, _ := c.RequestAgent(t.Context(), rpc.Request{
		To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), IdempotencyKey: key, Timeout: time.Minute,
	})
	return result
}

func counting(runs *atomic.Int32) map[string]rpc.Handler {
	return handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		runs.Add(1)
		return inv.Payload, nil
	})
}

// A bucket that disappears refuses requests with a key, and no others; the agent is not
// ready, and makes the bucket again by itself.
func TestSharedAnswersDisappear(t *testing.T) {
	url := natstest.Run(t, "jetstream {}\n").URL()
	var runs atomic.Int32
	cfg := load(t, shared(natsFiles(url)))
	cfg.Handlers = counting(&runs)
	cfg, logged := logTo(cfg)
	callee := startAgent(t, cfg, "callee")
	desk := startAgent(t, replicaOf(t, cfg, "test"), "caller").Client()
	for range 2 {
		if r := keyedCall(t, desk, "k"); r.Error != nil || runs.Load() != 1 {
			t.Fatalf("%+v, %d runs", r.Error, runs.Load())
		}
	}
	conn, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteKeyValue(t.Context(), "agentd-answers-callee"); err != nil {
		t.Fatal(err)
	}
	r := keyedCall(t, desk, "k-2")
	if e := r.Error; e == nil || e.Code != rpc.CodeInternal || !e.Retryable || e.DetectedBy != "agent://callee" || !strings.Contains(string(e.Details), `"cause"`) ||
		!strings.Contains(e.Message, "store that its replicas share") || strings.Contains(e.Message, "agentd-answers") || runs.Load() != 1 {
		t.Errorf("%+v, %d runs", e, runs.Load())
	}
	if r := keyedCall(t, desk, ""); r.Error != nil {
		t.Errorf("without a key: %+v", r.Error)
	}
	eventually.Holds(t, "the callee is ready", func() bool { return callee.Ready() == nil })
	if r := keyedCall(t, desk, "k-2"); r.Error != nil {
		t.Errorf("afterwards: %+v", r.Error)
	}
	for _, line := range []string{"requests with an idempotency key and proven requests are refused", "over: requests with an idempotency key"} {
		if n := strings.Count(logged(), `msg="`+line); n != 1 {
			t.Errorf("%d lines %q", n, line)
		}
	}
}

// An agent that is to share what it has served does not fall back to what it knows alone.
func TestSharedAnswersWithoutJetStream(t *testing.T) {
	var runs atomic.Int32
	cfg := load(t, shared(natsFiles(natstest.Run(t, "").URL())))
	cfg.Handlers = counting(&runs)
	callee := startAgent(t, cfg, "callee")
	if err := callee.Ready(); err == nil || !strings.Contains(err.Error(), "idempotency-store") || !strings.Contains(err.Error(), "enable JetStream") {
		t.Errorf("readiness: %v", err)
	}
	desk := startAgent(t, replicaOf(t, cfg, "test"), "caller").Client()
	if e := keyedCall(t, desk, "k").Error; e == nil || e.Code != rpc.CodeInternal || string(e.Details) != `{"cause":"missing"}` || runs.Load() != 0 {
		t.Errorf("%+v, %d runs", e, runs.Load())
	}
}

// A fleet in one process has one replica of each agent, which needs no broker to know
// what it has served.
func TestSharedAnswersInOneProcess(t *testing.T) {
	var runs atomic.Int32
	cfg := load(t, shared(files()))
	cfg.Handlers = counting(&runs)
	f := startFleet(t, cfg)
	defer stop(t, f)
	for i := range 2 {
		if r := keyedCall(t, client(t, f, "caller"), "k"); r.Error != nil || r.Replayed != (i == 1) || runs.Load() != 1 {
			t.Errorf("%+v, replayed %v, %d runs", r.Error, r.Replayed, runs.Load())
		}
	}
	if d, _ := f.Daemon("callee"); d.Ready() != nil {
		t.Error(d.Ready())
	}
}
