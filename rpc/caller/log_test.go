package caller_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// The line about a reply that is ignored leads to the call that it came for.
func TestIgnoredReplyNamesItsCall(t *testing.T) {
	log := &rpctest.Log{}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
		cc.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	forger(t, w, func(_, reply *envelope.Envelope) { reply.From = "agent://mallory" })
	res := w.Call(t, rpctest.Request())
	for _, want := range []string{
		"not from the peer that was called", "peer=" + string(rpctest.Reviewer), "capability=review-pr", "correlationId=" + res.CorrelationID, "traceId=",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log)
		}
	}
	if strings.Contains(log.String(), `traceId=""`) {
		t.Errorf("no trace in %s", log)
	}
}
