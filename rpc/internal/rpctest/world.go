package rpctest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// The two agents of a [World].
const (
	// Concierge calls.
	Concierge = envelope.Address("agent://concierge")
	// Reviewer is called, on Topic.
	Reviewer = envelope.Address("agent://pr-reviewer")
	// Topic is where Reviewer takes requests.
	Topic = "agents.pr-reviewer.requests"
)

// A World is one caller and one callee on a bus of their own.
type World struct {
	Bus *memory.Bus
	// Client is Concierge's end, on CallerConn.
	Client     *caller.Client
	CallerConn *memory.Conn
	// Inbox is Reviewer's end, on CalleeConn.
	Inbox      *callee.Inbox
	CalleeConn *memory.Conn
	// CallerViolations and CalleeViolations are what each end records, unless an
	// Option replaces its Auditor.
	CallerViolations, CalleeViolations *Violations
	// CalleeLog is what Inbox logs.
	CalleeLog *logtest.Lines
}

// An Option changes the two ends before a [World] starts them.
type Option func(*caller.Config, *callee.Config)

// NewWorld starts both ends; h runs every capability of [Contract]. They stop when
// the test ends.
func NewWorld(t testing.TB, h rpc.Handler, options ...Option) *World {
	t.Helper()
	w := &World{
		Bus:              memory.NewBus(memory.Options{}),
		CallerViolations: &Violations{},
		CalleeViolations: &Violations{},
		CalleeLog:        &logtest.Lines{},
	}
	contract := Document(t, Contract)
	w.CallerConn, w.CalleeConn = w.Bus.Connect(), w.Bus.Connect()
	cc := caller.Config{
		Self: Concierge, Records: rpc.Records{Auditor: w.CallerViolations}, Transports: []transport.Transport{w.CallerConn},
		Peers: rpc.Peers{Reviewer: {Address: Reviewer, Transport: memory.Kind, Topic: Topic, Contract: contract}},
	}
	ic := callee.Config{
		Self: Reviewer, Contract: contract, Records: rpc.Records{Auditor: w.CalleeViolations},
		Handlers: map[string]rpc.Handler{"review-pr": h, "loose": h},
		Logger:   slog.New(slog.NewTextHandler(w.CalleeLog, nil)),
	}
	for _, o := range options {
		o(&cc, &ic)
	}
	var err error
	if w.Inbox, err = callee.New(ic); err != nil {
		t.Fatal(err)
	}
	// The callee first, so that the first call of a test finds it listening.
	if err := w.Inbox.Listen(w.CalleeConn, Topic); err != nil {
		t.Fatal(err)
	}
	if w.Client, err = caller.New(cc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()                  // what still runs is cut short
		_ = w.Inbox.Shutdown(ctx) // and reports just that
		err := errors.Join(w.Client.Close(), w.CallerConn.Close(), w.CalleeConn.Close())
		if err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

// Call makes a call within the test's context and checks what holds for every
// result: it names the call, and its status, its error and the returned error agree.
func (w *World) Call(t testing.TB, r rpc.Request) *rpc.Result {
	t.Helper()
	return w.CallWith(t.Context(), t, r)
}

// CallWith is Call within ctx.
func (w *World) CallWith(ctx context.Context, t testing.TB, r rpc.Request) *rpc.Result {
	t.Helper()
	res, err := w.Client.RequestAgent(ctx, r)
	if res == nil || res.CorrelationID == "" {
		t.Fatalf("result %+v without a correlation id", res)
	}
	var typed *rpc.Error
	switch {
	case res.Status == rpc.StatusOK && (err != nil || res.Error != nil):
		t.Fatalf("status ok with the error %v", err)
	// The very same error, not an equal one: callers compare and inspect either.
	case res.Status != rpc.StatusOK && (!errors.As(err, &typed) || typed != res.Error):
		t.Fatalf("status %s with the error %v, and in the result %v", res.Status, err, res.Error)
	case res.Status != rpc.StatusOK && res.Error.DetectedBy == "":
		t.Fatalf("%v names no end", err)
	}
	return res
}

// Start makes a call in a goroutine of its own.
func (w *World) Start(ctx context.Context, r rpc.Request) <-chan *rpc.Result {
	done := make(chan *rpc.Result, 1)
	go func() { res, _ := w.Client.RequestAgent(ctx, r); done <- res }() // the result has the error too
	return done
}

// StopInbox stops Reviewer's end, so that somebody else can listen in its place.
func (w *World) StopInbox(t testing.TB) {
	t.Helper()
	if err := w.Inbox.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Wait receives from c, and fails the test when nothing comes.
func Wait[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	var v T
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("waited for too long")
	}
	return v
}

// WantStatus checks how a call ended; a code of 0 is not checked.
func WantStatus(t testing.TB, res *rpc.Result, status rpc.Status, code rpc.Code) {
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

// Document parses a capabilities file.
func Document(t testing.TB, src string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte(src), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
