package caller_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func ofTenant(tenant string) rpc.Request {
	r := rpctest.Request()
	r.TenantID = tenant
	return r
}

// The first call names its tenant. A nested one keeps that of its parent, also where
// that has none and the agent has one of its own.
func TestTenantOfACall(t *testing.T) {
	for name, test := range map[string]struct {
		own     string          // the agent's
		serving *rpc.Invocation // nil for a first call
		asked   string
		want    string // on the wire
		code    rpc.Code
	}{
		"none":                     {},
		"the agent's":              {own: "acme", want: "acme"},
		"the request's":            {own: "acme", asked: "beta", want: "beta"},
		"no name":                  {asked: "evil/../../x", code: rpc.CodeInvalidRequest},
		"the word for none":        {asked: "default", code: rpc.CodeInvalidRequest},
		"inherited":                {own: "beta", serving: &rpc.Invocation{TenantID: "acme"}, want: "acme"},
		"inherited none":           {own: "beta", serving: &rpc.Invocation{}},
		"named again":              {serving: &rpc.Invocation{TenantID: "acme"}, asked: "acme", want: "acme"},
		"another than inherited":   {serving: &rpc.Invocation{TenantID: "acme"}, asked: "beta", code: rpc.CodeTenantMismatch},
		"one where none inherited": {serving: &rpc.Invocation{}, asked: "beta", code: rpc.CodeTenantMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &rpctest.Calls{}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
					cc.TenantID, cc.Records.Access = test.own, calls
				})
				seen, ctx := w.Tap(t), t.Context()
				if test.serving != nil {
					ctx = rpc.WithInvocation(ctx, test.serving)
				}
				res := w.CallWith(ctx, t, ofTenant(test.asked))
				synctest.Wait()
				if test.code != 0 {
					rpctest.WantStatus(t, res, rpc.StatusError, test.code)
					if len(seen) != 0 {
						t.Error("something was published")
					}
					return
				}
				rpctest.WantStatus(t, res, rpc.StatusOK, 0)
				if e := <-seen; e.TenantID != test.want {
					t.Errorf("tenant %q was sent, want %q", e.TenantID, test.want)
				}
			})
		})
	}
}

// A skill gets no answer to a call that was made for another tenant.
func TestAwaitOfAnotherTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), q)
		r := inMode(rpc.ModeAsync)
		r.TenantID = "acme"
		id := w.Call(t, r).CorrelationID
		await := func(ctx context.Context) *rpc.Result {
			res, _ := w.Client.Await(ctx, id)
			return res
		}
		res := await(rpc.WithInvocation(t.Context(), &rpc.Invocation{TenantID: "beta"}))
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeTenantMismatch)
		if !strings.Contains(res.Error.Message, "of the tenant beta") {
			t.Error(res.Error.Message)
		}
		rpctest.WantStatus(t, await(rpc.WithInvocation(t.Context(), &rpc.Invocation{TenantID: "acme"})), rpc.StatusOK, 0)
		rpctest.WantStatus(t, await(t.Context()), rpc.StatusOK, 0)
	})
}

func TestTenantOfAClientIsAName(t *testing.T) {
	_, err := caller.New(caller.Config{Self: rpctest.Concierge, Peers: rpc.Peers{}, Records: rpc.Records{Auditor: &rpctest.Violations{}}, TenantID: "a/b"})
	if err == nil || !strings.Contains(err.Error(), "TenantID") {
		t.Errorf("%v", err)
	}
}
