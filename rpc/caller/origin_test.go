package caller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// origins decides by the name of whoever asked for a call.
type origins map[string]policy.Decision

func (o origins) DecideFor(origin string, _ envelope.Address, _ string) policy.Decision {
	return o[origin]
}

// An approver that grants everything, and keeps who asked.
type grants struct{ origin atomic.Pointer[string] }

func (g *grants) Approve(_ context.Context, r rpc.ApprovalRequest) (rpc.Approval, error) {
	g.origin.Store(&r.Origin)
	return rpc.Approval{Granted: true, By: "ann"}, nil
}

// Whoever asks for a call is judged by the rules for it, and named in its records; the
// callee learns nothing of it.
func TestOrigin(t *testing.T) {
	refusals, violations, access, asked := &rpctest.Refusals{}, &rpctest.Violations{}, &rpctest.Calls{}, &grants{}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.Document(t, rpctest.Contract), refusals), func(cc *caller.Config, _ *callee.Config) {
		cc.Checks.Authorizer, cc.Records.Access, cc.Checks.Approver = rpctest.Allow(), access, asked
		cc.Records.Auditor = violations
		cc.Checks.Origins = origins{"MCP:a": {Allowed: true, Reason: policy.AllowRule}, "MCP:b": {Reason: policy.NoClientRule}, "MCP:c": {Reason: policy.AskRule}}
	})
	published := w.Tap(t)
	r := rpctest.Request()
	for origin, want := range map[string]rpc.Status{"": rpc.StatusOK, "MCP:a": rpc.StatusOK, "MCP:b": rpc.StatusError, "MCP:c": rpc.StatusOK} {
		r.Origin = origin
		if res := w.Call(t, r); res.Status != want || want == rpc.StatusError && !strings.Contains(res.Error.Message, "MCP:b at agent://") {
			t.Errorf("%q: %s, %v", origin, res.Status, res.Error)
		}
	}
	recorded := map[string]int{}
	for _, c := range access.All() {
		recorded[c.Origin]++
	}
	if len(recorded) != 4 || recorded["MCP:b"] != 1 {
		t.Errorf("records by origin: %v", recorded)
	}
	if all := refusals.All(); len(all) != 1 || all[0].Origin != "MCP:b" {
		t.Errorf("refusals %+v", all)
	}
	if by := asked.origin.Load(); by == nil || *by != "MCP:c" {
		t.Errorf("a person was asked for %v", by)
	}
	r.Origin, r.Payload = "MCP:a", json.RawMessage(`{}`)
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if all := violations.All(); len(all) != 1 || all[0].Origin != "MCP:a" {
		t.Errorf("violations %+v", all)
	}
	for len(published) > 0 {
		if m := <-published; strings.Contains(fmt.Sprintf("%+v %s", *m, m.Payload), "MCP:") {
			t.Errorf("the message says who asked: %+v", *m)
		}
	}
	// No API passes one on.
	text, err := json.Marshal(rpc.Request{Origin: "MCP:a"})
	if err != nil || strings.Contains(string(text), "MCP") {
		t.Errorf("%s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"Origin":"MCP:a"}`), new(rpc.Request)); err == nil {
		t.Error("a request in JSON has an origin")
	}
}

// Without rules for origins, nobody but the agent itself calls.
func TestOriginWithoutRules(t *testing.T) {
	refusals := &rpctest.Refusals{}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.Document(t, rpctest.Contract), refusals), func(cc *caller.Config, _ *callee.Config) {
		cc.Checks.Authorizer = rpctest.Allow()
	})
	r := rpctest.Request()
	r.Origin = "MCP:a"
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusError, rpc.CodeDenied)
}

// Who has asked for an asynchronous call is named in what a later process records of its
// answer.
func TestOriginOfAnAwaitedAnswer(t *testing.T) {
	q, violations := rpctest.NewQueue(), &rpctest.Violations{}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q), func(cc *caller.Config, _ *callee.Config) {
		cc.Checks.Origins = origins{"MCP:a": {Allowed: true, Reason: policy.AllowRule}}
		cc.Records.Auditor = violations
	})
	r := inMode(rpc.ModeAsync)
	r.Origin = "MCP:a"
	id := w.Call(t, r).CorrelationID
	_, requests := q.Requests(t)
	if strings.Contains(fmt.Sprintf("%+v", requests[0]), "MCP:") {
		t.Errorf("the request says who asked: %+v", requests[0])
	}
	reply := rpctest.Reply(requests[0])
	reply.Payload = json.RawMessage(`{"ok":true,"data":{}}`)
	data, err := reply.Encode()
	if err != nil {
		t.Fatal(err)
	}
	q.Store(rpctest.KeyOf(requests[0]), data)
	res, _ := w.Client.Await(t.Context(), id)
	rpctest.WantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if all := violations.All(); len(all) != 1 || all[0].Origin != "MCP:a" {
		t.Errorf("violations %+v", all)
	}
}
