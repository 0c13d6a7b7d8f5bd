package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

const (
	callerAddr = envelope.Address("agent://concierge")
	calleeAddr = envelope.Address("agent://pr-reviewer")
	topic      = "agents.pr-reviewer.requests"
)

const contract = `
version: 1
agent: agent://pr-reviewer
transports:
  - kind: memory
    topics: {requests: agents.pr-reviewer.requests}
capabilities:
  - name: review-pr
    timeoutMs: 5000
    inputSchema:
      type: object
      properties:
        prUrl: {type: string}
        severity: {enum: [low, med, high]}
      required: [prUrl, severity]
      additionalProperties: false
    outputSchema:
      type: object
      properties:
        verdict: {enum: [approve, request-changes, comment]}
      required: [verdict]
  - name: loose
`

const (
	goodRequest = `{"prUrl":"https://example.com/1","severity":"med"}`
	goodAnswer  = `{"verdict":"approve"}`
)

func document(t testing.TB, src string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte(src), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A ledger keeps records in memory, or fails.
type ledger struct {
	mu      sync.Mutex
	records []rpc.SchemaViolation
	fail    error
}

func (l *ledger) RecordSchemaViolation(_ context.Context, v rpc.SchemaViolation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.records = append(l.records, v)
	return nil
}

func (l *ledger) all() []rpc.SchemaViolation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]rpc.SchemaViolation(nil), l.records...)
}

// A world is one caller and one callee on a bus of their own.
type world struct {
	bus            *memory.Bus
	callerConn     *memory.Conn
	calleeConn     *memory.Conn
	client         *caller.Client
	inbox          *callee.Inbox
	callerLedger   *ledger
	calleeLedger   *ledger
	calleeLog      *strings.Builder
	calleeContract *capability.Document
}

type option func(*caller.Config, *callee.Config)

// newWorld starts both ends; h runs every capability.
func newWorld(t testing.TB, h rpc.Handler, options ...option) *world {
	t.Helper()
	w := &world{
		bus: memory.NewBus(memory.Options{}), callerLedger: &ledger{}, calleeLedger: &ledger{},
		calleeLog: &strings.Builder{}, calleeContract: document(t, contract),
	}
	w.callerConn, w.calleeConn = w.bus.Connect(), w.bus.Connect()
	cc := caller.Config{
		Self: callerAddr, Records: rpc.Records{Auditor: w.callerLedger}, Transports: []transport.Transport{w.callerConn},
		Peers: rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: "memory", Topic: topic, Contract: w.calleeContract}},
	}
	ic := callee.Config{
		Self: calleeAddr, Contract: w.calleeContract, Records: rpc.Records{Auditor: w.calleeLedger},
		Handlers: map[string]rpc.Handler{"review-pr": h, "loose": h},
		Logger:   slog.New(slog.NewTextHandler(&lockedWriter{b: w.calleeLog}, nil)),
	}
	for _, o := range options {
		o(&cc, &ic)
	}
	var err error
	if w.inbox, err = callee.New(ic); err != nil {
		t.Fatal(err)
	}
	if err := w.inbox.Listen(w.calleeConn, topic); err != nil {
		t.Fatal(err)
	}
	if w.client, err = caller.New(cc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whatever runs is cut short
		_ = w.inbox.Shutdown(ctx)
		err := errors.Join(w.client.Close(), w.callerConn.Close(), w.calleeConn.Close())
		if err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

type lockedWriter struct {
	mu sync.Mutex
	b  *strings.Builder
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func answers(s string) rpc.Handler {
	return rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		return json.RawMessage(s), nil
	})
}

func fails(err error) rpc.Handler {
	return rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) { return nil, err })
}

// request is a valid call to review-pr.
func request() rpc.Request {
	return rpc.Request{To: calleeAddr, Capability: "review-pr", Payload: json.RawMessage(goodRequest)}
}

// call makes a call and checks what holds for every result.
func (w *world) call(t testing.TB, ctx context.Context, r rpc.Request) *rpc.Result {
	t.Helper()
	res, err := w.client.RequestAgent(ctx, r)
	if res == nil || res.CorrelationID == "" {
		t.Fatalf("result %+v without a correlation id", res)
	}
	var typed *rpc.Error
	switch {
	case res.Status == rpc.StatusOK && (err != nil || res.Error != nil):
		t.Fatalf("status ok with the error %v", err)
	case res.Status != rpc.StatusOK && (!errors.As(err, &typed) || typed != res.Error):
		t.Fatalf("status %s with the error %v, and in the result %v", res.Status, err, res.Error)
	case res.Status != rpc.StatusOK && res.Error.DetectedBy == "":
		t.Fatalf("%v names no end", err)
	}
	return res
}

// tap sees what is published on the callee's topic.
func (w *world) tap(t *testing.T) <-chan *envelope.Envelope {
	t.Helper()
	seen := make(chan *envelope.Envelope, 100)
	for _, on := range []string{topic, topic + ".control"} {
		_, err := w.calleeConn.Subscribe(on, "", func(m transport.Message) {
			e, err := envelope.Decode(m.Data)
			if err != nil {
				t.Errorf("published a bad envelope: %v", err)
				return
			}
			seen <- e
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

func wait[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("waited for too long")
		panic("unreachable")
	}
}

func wantStatus(t testing.TB, res *rpc.Result, status rpc.Status, code rpc.Code) {
	t.Helper()
	if res.Status != status {
		t.Errorf("status %s, want %s (%v)", res.Status, status, res.Error)
	}
	if code == 0 {
		return
	}
	if res.Error == nil || res.Error.Code != code {
		t.Errorf("error %v, want code %v", res.Error, code)
	}
}
