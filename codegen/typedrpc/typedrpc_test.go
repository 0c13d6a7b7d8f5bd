package typedrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen/testdata/golden/reviewer/prreviewer"
	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/codegen/typedrpc"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// reviewer serves pr-reviewer's capabilities through the generated interface.
type reviewer struct{}

func (reviewer) ReviewPr(_ context.Context, r prreviewer.ReviewPrRequest) (prreviewer.ReviewPrResponse, error) {
	switch r.PRURL {
	case "secret":
		return prreviewer.ReviewPrResponse{}, errors.New("disk at /srv is full")
	case "unset": // breaks its own contract
		return prreviewer.ReviewPrResponse{}, nil
	case "slow":
		return prreviewer.ReviewPrResponse{}, &rpc.SkillError{Message: "try later", Retryable: true}
	}
	return prreviewer.ReviewPrResponse{
		Verdict: prreviewer.ReviewPrResponseVerdictApprove, Summary: r.PRURL,
		Findings: []prreviewer.ReviewPrResponseFindingsItem{},
	}, nil
}

// discard keeps no records.
type discard struct{}

func (discard) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error { return nil }

// connect joins a generated client and a generated server over a real client,
// inbox and bus.
func connect(server prreviewer.Server) (client *prreviewer.Client, closeAll func() error, err error) {
	doc, err := capability.Load(filepath.Join("..", "..", "agents", "pr-reviewer", "capabilities.yaml"))
	if err != nil {
		return nil, nil, err
	}
	bus := memory.NewBus(memory.Options{})
	near, far := bus.Connect(), bus.Connect()
	var mux typed.Mux
	prreviewer.RegisterServer(&mux, server)
	inbox, err := callee.New(callee.Config{Self: doc.Agent, Contract: doc, Handlers: typedrpc.Handlers(&mux), Records: rpc.Records{Auditor: discard{}}})
	if err != nil {
		return nil, nil, err
	}
	topic := "agents." + doc.Agent.ID() + ".requests"
	if err := inbox.Listen(far, topic); err != nil {
		return nil, nil, err
	}
	c, err := caller.New(caller.Config{
		Self: "agent://concierge", Records: rpc.Records{Auditor: discard{}}, Transports: []transport.Transport{near},
		Peers: rpc.Peers{doc.Agent: {Address: doc.Agent, Transport: "memory", Topic: topic, Contract: doc}},
	})
	if err != nil {
		return nil, nil, err
	}
	return prreviewer.NewClient(typedrpc.Caller(c)), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return errors.Join(inbox.Shutdown(ctx), c.Close(), near.Close(), far.Close())
	}, nil
}

func TestGeneratedClientCallsGeneratedServer(t *testing.T) {
	client, closeAll, err := connect(reviewer{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}()
	review := func(url string, severity prreviewer.ReviewPrRequestSeverity) (prreviewer.ReviewPrResponse, error) {
		return client.ReviewPr(t.Context(), prreviewer.ReviewPrRequest{PRURL: url, Severity: severity}, typed.WithTimeout(10*time.Second))
	}
	got, err := review("https://x/1", prreviewer.ReviewPrRequestSeverityLow)
	if err != nil || got.Verdict != "approve" || got.Summary != "https://x/1" || got.Findings == nil {
		t.Errorf("%+v, %v", got, err)
	}
	tests := []struct {
		url, severity string
		code          rpc.Code
		text          string
	}{
		{"https://x/1", "urgent", rpc.CodeSchemaViolation, "/severity"},
		{"unset", "low", rpc.CodeSchemaViolation, "response"},
		{"secret", "low", rpc.CodeHandlerError, ""},
		{"slow", "low", rpc.CodeHandlerError, "try later"},
	}
	for _, tt := range tests {
		_, err := review(tt.url, prreviewer.ReviewPrRequestSeverity(tt.severity))
		if rpc.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "/srv") {
			t.Errorf("%s, %s: %v, want %s with %q", tt.url, tt.severity, err, tt.code, tt.text)
		}
	}
}

func TestCapabilitiesThatShareASkill(t *testing.T) {
	var m typed.Mux
	for _, name := range []string{"a", "b"} {
		typed.Handle(&m, name, "shared", func(context.Context, string) (string, error) { return name, nil })
	}
	handlers := typedrpc.Handlers(&m)
	if len(handlers) != 1 {
		t.Fatalf("%d handlers for one skill", len(handlers))
	}
	for _, name := range []string{"a", "b"} {
		out, err := handlers["shared"].Handle(t.Context(), &rpc.Invocation{Capability: name, Payload: json.RawMessage(`""`)})
		if err != nil || string(out) != `"`+name+`"` {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	if _, err := handlers["shared"].Handle(t.Context(), &rpc.Invocation{Capability: "c"}); err == nil {
		t.Error("an unknown capability is served")
	}
}
