package caller_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// The line about a reply that is ignored leads to the call that it came for.
func TestIgnoredReplyNamesItsCall(t *testing.T) {
	log := &logtest.Lines{}
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

// Whoever may publish to the reply inbox writes no log of any length with it. All messages
// are counted, in the log too.
func TestIgnoredRepliesDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const flood, most = 1000, 100
		log := &logtest.Lines{}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
			cc.Logger = slog.New(slog.NewTextHandler(log, nil))
		})
		replies := make(chan string, 1)
		forger(t, w, func(req, _ *envelope.Envelope) {
			_, topic, _ := strings.Cut(req.ReplyTo, "://")
			replies <- topic
		})
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		inbox := <-replies
		flooded := func(n int) int {
			before := strings.Count(log.String(), "reply ignored")
			for range n {
				if err := w.CalleeConn.Publish(t.Context(), transport.Message{Topic: inbox, Data: []byte("{")}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // so that none finds the inbox full
			}
			return strings.Count(log.String(), "reply ignored") - before
		}
		synctest.Wait() // for the second answer, which is stale
		stale := w.Client.Stale()
		if lines := flooded(flood); lines > most || w.Client.Stale()-stale != flood {
			t.Errorf("%d messages, %d lines, counted %d", flood, lines, w.Client.Stale()-stale)
		}
		time.Sleep(time.Second)
		if lines := flooded(1); lines != 1 || !strings.Contains(log.String(), "unlogged=") {
			t.Errorf("after the flood: %d lines, and whether they tell of the others: %v", lines, strings.Contains(log.String(), "unlogged="))
		}
	})
}
