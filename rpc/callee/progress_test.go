package callee_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

func TestProgressComesInOrderBeforeTheReply(t *testing.T) {
	both, kept := rpctest.Proven(t)
	w := rpctest.NewWorld(t, rpctest.Counts(20), rpctest.WithProgress(t), both)
	for range 20 {
		r, heard := rpctest.Listening(rpctest.Request())
		rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
		if len(*heard) != 20 {
			t.Fatalf("heard %v", *heard)
		}
		for i, e := range *heard {
			if want := (rpc.ProgressEvent{Seq: i + 1, Attempt: 1, Value: json.RawMessage(strconv.Itoa(i + 1))}); !reflect.DeepEqual(e, want) {
				t.Errorf("heard %+v, want %+v", e, want)
			}
		}
	}
	if got := kept.Proofs(); got != "" || w.Client.Stale() != 0 {
		t.Errorf("refused %q, ignored %d", got, w.Client.Stale())
	}
}

// Who does not ask sees nothing new on the wire, and a capability that does not say so
// tells nothing.
func TestProgressOnlyWhereBothEndsWantIt(t *testing.T) {
	for _, test := range []struct {
		name        string
		offered     bool
		asked       string
		wantsAnyone bool
	}{
		{"both", true, "accept", true},
		{"nobody asks", true, "", false},
		{"another word", true, "1", false},
		{"not offered", false, "accept", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			wants := make(chan bool, 1)
			h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				wants <- inv.WantsProgress()
				return rpctest.Counts(1).Handle(ctx, inv)
			})
			options := []rpctest.Option{}
			if test.offered {
				options = append(options, rpctest.WithProgress(t))
			}
			w := rpctest.NewWorld(t, h, options...)
			f := rpctest.NewForeignCaller(t, w)
			e := f.Request()
			if test.asked != "" {
				e.Headers = envelope.Headers{{Key: envelope.HeaderProgress, Value: test.asked}}
			}
			w.Publish(t, rpctest.Topic, e)
			if got := rpctest.Wait(t, wants); got != test.wantsAnyone {
				t.Errorf("WantsProgress is %v", got)
			}
			first := rpctest.Wait(t, f.Replies)
			if test.wantsAnyone {
				seq, _ := first.Headers.Get(envelope.HeaderProgress)
				if first.Kind != envelope.Event || seq != "1" || first.CausedBy != "m-1" || first.CorrelationID != "c-1" ||
					first.From != rpctest.Reviewer || first.To != "agent://foreign" || string(first.Payload) != "1" {
					t.Errorf("the event is %+v %s", first, first.Payload)
				}
				first = rpctest.Wait(t, f.Replies)
			}
			if first.Kind != envelope.Response {
				t.Errorf("a %s came, and not the reply", first.Kind)
			}
		})
	}
}

// A skill that tells too much is not held up: what is over the bounds is lost, and
// the caller sees where.
func TestTooMuchProgressLeavesGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const told = 3 * rpc.ProgressPerSecond
		h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			start := time.Now()
			if _, err := rpctest.Counts(told).Handle(ctx, inv); err != nil {
				return nil, err
			}
			if time.Since(start) != 0 {
				return nil, errors.New("progress held the skill up")
			}
			time.Sleep(time.Second)
			return json.RawMessage(rpctest.ValidAnswer), rpc.Progress(ctx, json.RawMessage(`"last"`))
		})
		w := rpctest.NewWorld(t, h, rpctest.WithProgress(t))
		r, heard := rpctest.Listening(rpctest.Request())
		rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
		all := *heard
		if len(all) != rpc.ProgressPerSecond+1 {
			t.Fatalf("heard %d events, want a second's worth and the last", len(all))
		}
		for i := 1; i < len(all); i++ {
			if all[i].Seq <= all[i-1].Seq {
				t.Errorf("event %d came after %d", all[i].Seq, all[i-1].Seq)
			}
		}
		if last := all[len(all)-1]; last.Seq != told+1 || string(last.Value) != `"last"` {
			t.Errorf("the last is %+v", last)
		}
	})
}

// Progress after the end of a call is refused, and reaches nobody.
func TestLateProgressIsRefused(t *testing.T) {
	kept := make(chan context.Context, 1)
	h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		kept <- ctx
		return rpctest.Counts(1).Handle(ctx, inv)
	})
	w := rpctest.NewWorld(t, h, rpctest.WithProgress(t))
	r, heard := rpctest.Listening(rpctest.Request())
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
	if err := rpc.Progress(rpctest.Wait(t, kept), json.RawMessage("2")); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("late progress: %v", err)
	}
	if len(*heard) != 1 {
		t.Errorf("heard %v", *heard)
	}
}

// A broker that takes nothing does not hold up the reply for long.
type stuck struct{ transport.Transport }

func (s stuck) Publish(ctx context.Context, m transport.Message) error {
	e, err := envelope.Decode(m.Data)
	if err == nil && e.Kind == envelope.Event {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Transport.Publish(ctx, m)
}

func TestReplyWaitsForProgressOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Counts(3), rpctest.WithProgress(t))
		if err := w.Inbox.Listen(stuck{w.CalleeConn}, rpctest.Topic+"2"); err != nil {
			t.Fatal(err)
		}
		f := rpctest.NewForeignCaller(t, w)
		e := f.Request()
		e.Headers = envelope.Headers{{Key: envelope.HeaderProgress, Value: "accept"}}
		start := time.Now()
		w.Publish(t, rpctest.Topic+"2", e)
		if reply := rpctest.Wait(t, f.Replies); reply.Kind != envelope.Response || time.Since(start) != time.Second {
			t.Errorf("a %s came after %s", reply.Kind, time.Since(start))
		}
	})
}
