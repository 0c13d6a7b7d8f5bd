package caller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/internal/id"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// How far a peer's clock is off is read from the id of its answer, as far as that has one that tells.
func TestClockSkew(t *testing.T) {
	at := func(ahead time.Duration) func() string {
		return func() string { one, _ := new(id.Source).TwoAt(time.Now().Add(ahead)); return one }
	}
	for name, test := range map[string]struct {
		made  func() string
		skew  time.Duration
		known bool
	}{
		"right":          {at(0), 0, true},
		"ahead":          {at(10 * time.Minute), 10 * time.Minute, true},
		"behind":         {at(-10 * time.Minute), -10 * time.Minute, true},
		"of other makes": {uuid.NewString, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
				w.StopInbox(t)
				_, err := w.CalleeConn.Subscribe(rpctest.Topic+".capabilities", "", func(m transport.Message) {
					request, err := envelope.Decode(m.Data)
					if err != nil {
						t.Error(err)
						return
					}
					reply := rpctest.Reply(request)
					reply.MessageID = test.made()
					data, err := reply.Encode()
					if err == nil {
						err = w.CalleeConn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
					}
					if err != nil {
						t.Error(err)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				skew, known := w.Client.ClockSkew(t.Context(), rpctest.Reviewer)
				if off := (skew - test.skew).Abs(); known != test.known || off > time.Millisecond { // an id has no fractions
					t.Errorf("%s, known: %t", skew, known)
				}
				if _, known := w.Client.ClockSkew(t.Context(), "agent://nobody"); known {
					t.Error("the clock of an agent that is no peer is known")
				}
			})
		})
	}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	if skew, known := w.Client.ClockSkew(t.Context(), rpctest.Reviewer); !known || skew != 0 {
		t.Errorf("of a peer on this host: %s, known: %t", skew, known)
	}
}
