package caller_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]caller.Config{
		"self":    {Self: "x", Peers: rpc.Peers{}, Records: rpc.Records{Auditor: &rpctest.Violations{}}},
		"peers":   {Self: rpctest.Concierge, Records: rpc.Records{Auditor: &rpctest.Violations{}}},
		"auditor": {Self: rpctest.Concierge, Peers: rpc.Peers{}},
	} {
		if _, err := caller.New(cfg); err == nil {
			t.Errorf("client without %s", name)
		}
	}
}

func TestPolicyNeedsALedger(t *testing.T) {
	for _, checks := range []caller.Checks{{Authorizer: rpctest.Allow()}, {Limiter: policy.NewRateLimiter(0)}} {
		cc := caller.Config{Self: rpctest.Concierge, Peers: rpc.Peers{}, Checks: checks, Records: rpc.Records{Auditor: &rpctest.Violations{}}}
		if _, err := caller.New(cc); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("client: %v", err)
		}
	}
}

func TestFullPendingTableRefusesTheNewCall(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-release
		return json.RawMessage(rpctest.ValidAnswer), nil
	}), func(cc *caller.Config, _ *callee.Config) { cc.Limits.MaxPending = 1 })
	first := make(chan *rpc.Result)
	go func() { res, _ := w.Client.RequestAgent(context.Background(), rpctest.Request()); first <- res }()
	rpctest.Wait(t, started)
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusBusy, rpc.CodeBusy)
	if res.Error.DetectedBy != rpctest.Concierge {
		t.Errorf("refused by %s", res.Error.DetectedBy)
	}
	close(release)
	if res := rpctest.Wait(t, first); res.Status != rpc.StatusOK {
		t.Errorf("the first call ended as %s: %v", res.Status, res.Error)
	}
}

func TestCloseAbandonsPendingCalls(t *testing.T) {
	started := make(chan struct{})
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	first := make(chan *rpc.Result)
	go func() { res, _ := w.Client.RequestAgent(context.Background(), rpctest.Request()); first <- res }()
	rpctest.Wait(t, started)
	if err := w.Client.Close(); err != nil {
		t.Fatal(err)
	}
	rpctest.WantStatus(t, rpctest.Wait(t, first), rpc.StatusAbandoned, rpc.CodeAbandoned)
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusAbandoned, rpc.CodeAbandoned)
}

// A lossy connection's inboxes have dropped messages.
type lossy struct{ *memory.Conn }

func (l lossy) OpenInbox(h transport.Handler) (transport.Inbox, error) {
	inbox, err := l.Conn.OpenInbox(h)
	return lossyInbox{inbox}, err
}

type lossyInbox struct{ transport.Inbox }

func (l lossyInbox) Dropped() uint64 { return l.Inbox.Dropped() + 3 }

// Replies that found no room are counted.
func TestDroppedReplies(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
		cc.Transports[0] = lossy{cc.Transports[0].(*memory.Conn)}
	})
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	if n := w.Client.Dropped(); n != 3 {
		t.Errorf("%d dropped", n)
	}
}
