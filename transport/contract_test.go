package transport_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/transport"
)

// Logs and alerts match these words, and each says what an operator has to look at.
func TestWordsOfCodes(t *testing.T) {
	for code, want := range map[transport.Code]string{
		transport.Closed:       "transport closed",
		transport.Disconnected: "not connected to the broker",
		transport.NoResponders: "nobody receives on this topic",
		transport.TooLarge:     "message too large for the transport",
		transport.SlowConsumer: "the receiver is full",
		transport.BadTopic:     "not a topic",
		transport.Denied:       "the broker's permissions forbid it",
		transport.Failed:       "the broker refused",
	} {
		if code.Error() != want {
			t.Errorf("code %d: %q, want %q", code, code.Error(), want)
		}
	}
}

// The errors of a queue are told apart, also when a transport wraps them: a full
// queue is worth another try, a missing one is not.
func TestQueueErrorsAreToldApart(t *testing.T) {
	all := []error{transport.ErrNotStored, transport.ErrNoQueue, transport.ErrQueueFull}
	for i, err := range all {
		wrapped := fmt.Errorf("enqueue: %w", &transport.Error{Code: transport.Failed, Op: "enqueue", Cause: err})
		for j, other := range all {
			if errors.Is(wrapped, other) != (i == j) {
				t.Errorf("%v is %v: %v", wrapped, other, i != j)
			}
		}
		if !errors.Is(wrapped, transport.Failed) {
			t.Errorf("%v has lost its code", wrapped)
		}
	}
}

// Topics that are joined by a dot are a topic, and a topic that is cut anywhere is
// none exactly if the cut leaves a dot at an end or nothing at all.
func TestTopicsJoinAndSplit(t *testing.T) {
	topic := rapid.StringMatching(`[a-zA-Z0-9_$/-]{1,4}(\.[a-zA-Z0-9_$/-]{1,4}){0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := topic.Draw(t, "a"), topic.Draw(t, "b")
		if err := transport.CheckTopic("publish", a+"."+b); err != nil {
			t.Fatalf("%s.%s: %v", a, b, err)
		}
		for _, bad := range []string{a + ".." + b, "." + a, a + ".", a + ". " + b, a + ".*." + b, a + ".>"} {
			if transport.CheckTopic("publish", bad) == nil {
				t.Fatalf("%q is a topic", bad)
			}
		}
		at := rapid.IntRange(0, len(a)).Draw(t, "cut")
		head := a[:at]
		want := head != "" && head[len(head)-1] != '.'
		if err := transport.CheckTopic("publish", head); (err == nil) != want {
			t.Fatalf("%q: %v", head, err)
		}
	})
}

// Every operation names itself in its error.
func TestCheckTopicNamesTheOperation(t *testing.T) {
	for _, op := range []string{"publish", "subscribe", "inbox"} {
		err, ok := errors.AsType[*transport.Error](transport.CheckTopic(op, "a b"))
		if !ok || err.Op != op || err.Topic != `"a b"` {
			t.Errorf("%+v", err)
		}
	}
}
