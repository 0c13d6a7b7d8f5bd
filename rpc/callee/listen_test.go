package callee_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A faultyTransport refuses one topic, and its subscriptions fail when they close.
type faultyTransport struct {
	transport.Transport
	refused     string
	err         error
	open        map[string]bool
	closeErrors map[string]error // by topic
}

func (f *faultyTransport) Subscribe(topic, group string, h transport.Handler) (transport.Subscription, error) {
	if topic == f.refused {
		return nil, f.err
	}
	s, err := f.Transport.Subscribe(topic, group, h)
	f.open[topic] = true
	return faultySubscription{s, f, topic}, err
}

type faultySubscription struct {
	transport.Subscription
	from  *faultyTransport
	topic string
}

func (s faultySubscription) Close() error {
	delete(s.from.open, s.topic)
	return errors.Join(s.Subscription.Close(), s.from.closeErrors[s.topic])
}

// An inbox that cannot have all its topics keeps none of them, and reports both why
// and what went wrong when it gave the others back.
func TestListenFails(t *testing.T) {
	const control, capabilities = rpctest.Topic + ".control", rpctest.Topic + ".capabilities"
	denied, stuck, lost := errors.New("denied"), errors.New("stuck"), errors.New("lost")
	for _, test := range []struct {
		refused     string
		closeErrors map[string]error
		want        []error
	}{
		{control, nil, []error{denied}},
		{capabilities, map[string]error{control: stuck}, []error{denied, stuck}},
		{rpctest.Topic, nil, []error{denied}},
		{rpctest.Topic, map[string]error{control: stuck, capabilities: lost}, []error{denied, stuck, lost}},
		{rpctest.Topic, map[string]error{capabilities: lost}, []error{denied, lost}},
	} {
		conn := memory.NewBus(memory.Options{}).Connect()
		defer func() { _ = conn.Close() }()
		f := &faultyTransport{Transport: conn, refused: test.refused, err: denied, open: map[string]bool{}, closeErrors: test.closeErrors}
		in, err := callee.New(callee.Config{
			Self: rpctest.Reviewer, Contract: rpctest.Document(t, rpctest.Contract), Records: rpc.Records{Auditor: &rpctest.Violations{}},
			Handlers: map[string]rpc.Handler{"review-pr": rpctest.Answers(`1`), "loose": rpctest.Answers(`1`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = in.Listen(f, rpctest.Topic)
		for _, want := range []error{denied, stuck, lost} {
			wanted := false
			for _, w := range test.want {
				wanted = wanted || w == want
			}
			if errors.Is(err, want) != wanted {
				t.Errorf("%s refused: %v: %v, want %v", test.refused, err, !wanted, wanted)
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), "callee: ") {
			t.Errorf("%s refused: %v", test.refused, err)
		}
		if len(f.open) != 0 {
			t.Errorf("%s refused: %v stay subscribed", test.refused, f.open)
		}
		if err := in.Shutdown(t.Context()); err != nil { // it has nothing to close
			t.Errorf("%s refused: then %v", test.refused, err)
		}
	}
}
