package caller

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
)

func bindingOf(call, attempt int) binding {
	return binding{token: "t" + strconv.Itoa(call), correlationID: "c" + strconv.Itoa(call), messageID: "m" + strconv.Itoa(call) + "." + strconv.Itoa(attempt)}
}

// answerTo is a reply that says which request it is for.
func answerTo(b binding) outcome {
	return outcome{reply: &envelope.Message{Envelope: envelope.Envelope{CorrelationID: b.correlationID, CausedBy: b.messageID}}}
}

// A reply that comes late must not settle what its pendingCall is used for now,
// neither another call nor another attempt of the same one.
func TestLateReplySettlesNothing(t *testing.T) {
	table := newPendingTable(10)
	for _, next := range []binding{bindingOf(2, 1), bindingOf(1, 2)} {
		first := bindingOf(1, 1)
		held, err := table.reserve(first)
		if err != nil {
			t.Fatal(err)
		}
		found, ok := table.find(first.token)
		if !ok || found != first {
			t.Fatalf("found %+v", found)
		}
		if !table.remove(held) { // the caller gives up while its reply is looked at
			t.Fatal("an outcome is on its way")
		}
		table.recycle(held)
		again, err := table.reserve(next)
		if err != nil {
			t.Fatal(err)
		}
		table.distrust(found)
		if table.complete(found, answerTo(found)) || len(again.outcome) > 0 || again.unproven {
			t.Errorf("the reply to %+v reached %+v", found, next)
		}
		if !table.complete(next, answerTo(next)) || table.remove(again) {
			t.Error("its own reply does not settle the call")
		}
		if o := <-again.outcome; o.reply.CausedBy != next.messageID {
			t.Errorf("settled by the reply to %s", o.reply.CausedBy)
		}
		table.recycle(again)
	}
}

// Callers that give up at any moment, and repliers that come once, twice or
// late: every outcome belongs to the call that gets it.
func TestPendingCallsUnderLoad(t *testing.T) {
	const callers, calls = 8, 300
	table := newPendingTable(callers)
	found := make(chan binding, 4*callers)
	var repliers, all sync.WaitGroup
	for range 4 {
		repliers.Go(func() {
			for b := range found {
				table.complete(b, answerTo(b))
				table.complete(b, answerTo(b))
			}
		})
	}
	for caller := range callers {
		all.Go(func() {
			for i := range calls {
				b := bindingOf(caller, i) // the token is the same for all of a caller's
				call, err := table.reserve(b)
				if err != nil {
					t.Error(err)
					return
				}
				found <- b
				call.timer.Reset(time.Duration(i%5) * 10 * time.Microsecond)
				select {
				case o := <-call.outcome:
					if o.reply.CausedBy != b.messageID {
						t.Errorf("%s got the reply to %s", b.messageID, o.reply.CausedBy)
					}
				case <-call.timer.C:
					if !table.remove(call) {
						if o := <-call.outcome; o.reply.CausedBy != b.messageID {
							t.Errorf("%s got the reply to %s, late", b.messageID, o.reply.CausedBy)
						}
					}
				}
				table.recycle(call)
			}
		})
	}
	all.Wait()
	close(found)
	repliers.Wait()
	if n := table.len(); n != 0 {
		t.Errorf("%d calls still wait", n)
	}
}
