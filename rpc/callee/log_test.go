package callee_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// Whatever a skill does wrong is an error in the log, with an incident that the caller
// can quote; the call's other identifiers lead from there to its records.
func TestSkillFailureIsLoggedOnce(t *testing.T) {
	for name, handler := range map[string]rpc.Handler{
		"an error":              rpctest.Fails(errors.New("why")),
		"an error for a caller": rpctest.Fails(&rpc.SkillError{Message: "why"}),
		"no JSON":               rpctest.Answers(`{`),
	} {
		t.Run(name, func(t *testing.T) {
			w := rpctest.NewWorld(t, handler)
			res := w.Call(t, rpctest.Request())
			var details struct{ Incident string }
			if err := json.Unmarshal(res.Error.Details, &details); err != nil || details.Incident == "" {
				t.Fatalf("details %s, %v", res.Error.Details, err)
			}
			w.StopInbox(t)
			log := w.CalleeLog.String()
			line := ""
			for l := range strings.Lines(log) {
				if strings.Contains(l, `msg="skill failed"`) {
					line = l
				}
			}
			for _, want := range []string{
				"level=ERROR", "incident=" + details.Incident, "peer=" + string(rpctest.Concierge), "capability=review-pr",
				"correlationId=" + res.CorrelationID, "code=" + res.Error.Code.String(),
			} {
				if !strings.Contains(line, want) {
					t.Errorf("no %s in %s", want, log)
				}
			}
			if strings.Contains(line, `traceId=""`) || !strings.Contains(line, "traceId=") || strings.Contains(log, "request refused") {
				t.Errorf("logged %s", log)
			}
		})
	}
}

// A call that the callee refuses is no failure of the skill.
func TestRefusalIsNoFailure(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(`{}`))
	res := w.Call(t, rpc.Request{To: rpctest.Reviewer, Capability: "review-pr", Payload: json.RawMessage(fmt.Sprintf("%q", "x"))})
	w.StopInbox(t)
	if log := w.CalleeLog.String(); res.Status == rpc.StatusOK || strings.Contains(log, "skill failed") {
		t.Errorf("%+v, %s", res, log)
	}
}
