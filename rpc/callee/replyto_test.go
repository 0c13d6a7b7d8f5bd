package callee_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// refusals records what is refused, without waiting.
type refusals chan rpc.Refusal

func (r refusals) RecordRefusal(_ context.Context, refusal rpc.Refusal) error {
	r <- refusal
	return nil
}

// A request whose answer is to go to a topic that is not its caller's runs nothing, is
// not answered and is recorded, whether the envelope or the message names the topic.
func TestForeignReplyTopics(t *testing.T) {
	for name, test := range map[string]struct {
		topic   string
		allowed []string
		answers bool
	}{
		"another agent's requests":     {topic: "agents.victim.requests"},
		"the broker's own":             {topic: "$JS.API.STREAM.PURGE.VICTIM"},
		"listed for the caller":        {topic: "foreign.replies", allowed: []string{"foreign.replies"}, answers: true},
		"below what is listed":         {topic: "foreign.replies.7", allowed: []string{"other", "foreign.replies.>"}, answers: true},
		"the parent of what is listed": {topic: "foreign.replies", allowed: []string{"foreign.replies.>"}},
		"beside what is listed":        {topic: "foreign.replies.7", allowed: []string{"foreign.replies"}},
	} {
		for _, by := range []string{"envelope", "message"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					counted, recorded := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, make(refusals, 9)
					w := rpctest.NewWorld(t, counted, func(_ *caller.Config, ic *callee.Config) {
						ic.Records.Refusals = recorded
						ic.ReplyTopics = func(caller envelope.Address) []string {
							if caller == "agent://foreign" {
								return test.allowed
							}
							return nil
						}
					})
					got := make(chan transport.Message, 9)
					if _, err := w.CallerConn.Subscribe(test.topic, "", func(m transport.Message) { got <- m }); err != nil {
						t.Fatal(err)
					}
					for _, on := range []string{rpctest.Topic, rpctest.Topic + ".capabilities"} {
						e := rpctest.NewForeignCaller(t, w).Request()
						if e.ReplyTo = "memory://" + test.topic; on != rpctest.Topic {
							e.Capability = "agentd.capabilities"
						}
						m := transport.Message{Topic: on}
						if by == "message" {
							e.ReplyTo, m.Reply = "", test.topic
						}
						m.Data = encode(t, e)
						if err := w.CallerConn.Publish(t.Context(), m); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
					}
					if test.answers {
						if len(got) != 2 || counted.Load() != 1 || len(recorded) != 0 {
							t.Errorf("%d answers, %d runs, %d records", len(got), counted.Load(), len(recorded))
						}
						return
					}
					if len(got) != 0 || counted.Load() != 0 || len(recorded) != 2 {
						t.Fatalf("%d answers, %d runs, %d records", len(got), counted.Load(), len(recorded))
					}
					if r := <-recorded; r.Code != rpc.CodeAuthFailed || r.Peer != "agent://foreign" || r.Proof.Reason != identity.ForeignReply {
						t.Errorf("recorded %+v", r)
					}
				})
			})
		}
	}
}
