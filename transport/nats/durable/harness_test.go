package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
)

const (
	callerAddr = envelope.Address("agent://caller")
	calleeAddr = envelope.Address("agent://callee.v2")
	topic      = "agents.callee.v2.requests"
	limit      = 60 * time.Second // for what must happen, on a busy machine
)

// violations counts records.
type violations struct{ n atomic.Int64 }

func (v *violations) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error {
	v.n.Add(1)
	return nil
}

func contract(t testing.TB) *capability.Document { return contractWith(t, "") }

// contractWith is the contract with more keys of its first capability.
func contractWith(t testing.TB, more string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://callee.v2
transports: [{kind: nats, servers: [s], subjects: {requests: agents.callee.v2.requests}}]
capabilities:
  - name: count
    delivery: durable
    timeoutMs: 30000`+more+`
    inputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
  - {name: plain}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func connect(t testing.TB, urls ...string) *nats.Conn {
	t.Helper()
	return connectLogged(t, nil, urls...)
}

func connectLogged(t testing.TB, log *slog.Logger, urls ...string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(t.Context(), nats.Options{Servers: urls, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A served agent is one replica of the callee.
type served struct {
	t       testing.TB
	inbox   *callee.Inbox
	mailbox *durable.Mailbox
	once    sync.Once
}

func serve(t testing.TB, opts durable.Options, h rpc.HandlerFunc, urls ...string) *served {
	t.Helper()
	return serveAs(t, opts, callee.Config{Contract: contract(t)}, h, urls...)
}

// serveAs is serve with more in the inbox's configuration.
func serveAs(t testing.TB, opts durable.Options, cfg callee.Config, h rpc.HandlerFunc, urls ...string) *served {
	t.Helper()
	opts.Conn, opts.Agent = connect(t, urls...), calleeAddr.ID()
	if opts.FirstDelay == 0 {
		opts.FirstDelay = 10 * time.Millisecond
	}
	s := &served{t: t}
	var err error
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if s.mailbox, err = durable.OpenMailbox(ctx, topic, opts); err != nil {
		t.Fatal(err)
	}
	cfg.Self, cfg.Records.Auditor, cfg.Handlers = calleeAddr, &violations{}, map[string]rpc.Handler{"count": h, "plain": h}
	s.inbox, err = callee.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.inbox.Listen(opts.Conn, topic), s.inbox.ListenDurable(opts.Conn, s.mailbox, topic)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *served) stop() {
	s.once.Do(func() {
		if err := s.inbox.Shutdown(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
}

func client(t testing.TB, urls ...string) *caller.Client {
	t.Helper()
	return clientOf(t, &violations{}, urls...)
}

func clientOf(t testing.TB, auditor rpc.Auditor, urls ...string) *caller.Client {
	t.Helper()
	return clientAs(t, caller.Config{Records: rpc.Records{Auditor: auditor}}, urls...)
}

// clientAs is client with more in the configuration.
func clientAs(t testing.TB, cfg caller.Config, urls ...string) *caller.Client {
	t.Helper()
	conn := connect(t, urls...)
	calls, err := durable.NewCalls(durable.Options{Conn: conn, Agent: callerAddr.ID()})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Self, cfg.Transports, cfg.Queues = callerAddr, []transport.Transport{conn}, map[string]transport.CallQueue{nats.Kind: calls}
	cfg.Peers = rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: nats.Kind, Topic: topic, Contract: contract(t)}}
	c, err := caller.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func request(n int, mode rpc.Mode, timeout time.Duration) rpc.Request {
	return rpc.Request{To: calleeAddr, Capability: "count", Mode: mode, Timeout: timeout, Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
}

// echo answers with what it was asked, and counts.
func echo(runs *atomic.Int64) rpc.HandlerFunc {
	return func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		runs.Add(1)
		return inv.Payload, nil
	}
}

func await(t testing.TB, c *caller.Client, id string) (*rpc.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return c.Await(ctx, id)
}

func start(t testing.TB, c *caller.Client, n int) string {
	t.Helper()
	r, err := c.RequestAgent(t.Context(), request(n, rpc.ModeAsync, 0))
	if err != nil || !r.Queued || r.Response != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.CorrelationID
}
