package callee_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// What a skill says about its failure stays at home, unless it is meant for
// the caller.
func TestSkillFailures(t *testing.T) {
	const secret = "postgres://root:hunter2@db/ at /srv/skill.go:12"
	for _, test := range []struct {
		name      string
		handler   rpc.Handler
		code      rpc.Code
		says      string
		retryable bool
	}{
		{"an error", rpctest.Fails(errors.New(secret)), rpc.CodeHandlerError, "incident", false},
		{"a panic", rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) { panic(secret) }), rpc.CodeHandlerError, "incident", false},
		{"a public error", rpctest.Fails(&rpc.SkillError{Message: "no such pull request", Err: errors.New(secret)}), rpc.CodeHandlerError, "no such pull request", false},
		{"a public error, retryable", rpctest.Fails(&rpc.SkillError{Message: "try later", Retryable: true}), rpc.CodeHandlerError, "try later", true},
		{"a code it may not use", rpctest.Fails(&rpc.SkillError{Code: rpc.CodeDenied, Message: "no"}), rpc.CodeHandlerError, "no", false},
		{"garbage", rpctest.Answers(`{"verdict": ` + secret), rpc.CodeBadSkillOutput, "not JSON", false},
		{"no answer", rpctest.Answers(``), rpc.CodeBadSkillOutput, "not JSON", false},
		{"a huge answer", rpctest.Answers(`"` + strings.Repeat("x", 2<<20) + `"`), rpc.CodePayloadTooLarge, "1048576 are allowed", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := rpctest.NewWorld(t, test.handler)
			res := w.Call(t, rpctest.Request())
			rpctest.WantStatus(t, res, rpc.StatusError, test.code)
			if res.Error.DetectedBy != rpctest.Reviewer || res.Error.Retryable != test.retryable || !strings.Contains(res.Error.Message, test.says) {
				t.Errorf("%v by %s, retryable %v; want %q", res.Error, res.Error.DetectedBy, res.Error.Retryable, test.says)
			}
			all, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(all), "hunter2") || strings.Contains(string(all), ".go:") {
				t.Errorf("internals reached the caller: %s", all)
			}
			if test.says == "incident" {
				id := strings.Fields(res.Error.Message[strings.Index(res.Error.Message, "incident "):])[1]
				w.StopInbox(t)
				if log := w.CalleeLog.String(); !strings.Contains(log, id) || !strings.Contains(log, "hunter2") {
					t.Errorf("incident %s is not in the callee's log: %s", id, log)
				}
			}
		})
	}
}

// A loop of agents ends at the hop limit, not with the machine.
func TestLoopStops(t *testing.T) {
	var w *rpctest.World
	w = rpctest.NewWorld(t, rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		res, err := w.Client.RequestAgent(ctx, rpc.Request{To: rpctest.Reviewer, Capability: "loose"})
		if err != nil {
			return nil, &rpc.SkillError{Message: res.Error.Message}
		}
		return res.Response, nil
	}))
	res := w.Call(t, rpc.Request{To: rpctest.Reviewer, Capability: "loose"})
	rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeHandlerError)
	if !strings.Contains(res.Error.Message, "a loop?") {
		t.Errorf("message %q", res.Error.Message)
	}
}
