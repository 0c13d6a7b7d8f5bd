package once_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats/once"
)

func memory(t testing.TB, url string) *once.Messages {
	t.Helper()
	return once.NewMessages(once.Options{JetStream: jetStream(t, url), Bucket: "messages", Timeout: 20 * time.Second})
}

// One of all replicas accepts a message, and the server remembers it for as long as any
// would.
func TestMessageIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	natstest.EachVersion(t, withJetStream, func(t *testing.T, url string) {
		replicas := []*once.Messages{memory(t, url), memory(t, url), memory(t, url)}
		for i := range 10 {
			var first atomic.Int32
			var wg sync.WaitGroup
			for _, m := range replicas {
				wg.Go(func() {
					got, err := m.Take(t.Context(), "agent://buyer", fmt.Sprint("m-", i), time.Now().Add(time.Minute))
					if err != nil {
						t.Error(err)
					}
					if got {
						first.Add(1)
					}
				})
			}
			wg.Wait()
			if first.Load() != 1 {
				t.Errorf("%d replicas accept a message", first.Load())
			}
		}
		for from, id := range map[envelope.Address]string{"agent://buyer": "m-0x", "agent://buyerm": "-0", "agent://other": "m-0"} {
			if first, err := replicas[0].Take(t.Context(), from, id, time.Now().Add(time.Minute)); err != nil || !first {
				t.Errorf("%s of %s: %v, %v", id, from, first, err)
			}
		}
		ok(t, replicas[0].Check(t.Context()))
		kv, err := jetStream(t, url).KeyValue(t.Context(), "messages")
		ok(t, err)
		status, err := kv.Status(t.Context())
		ok(t, err)
		if least := rpc.MaxTimeout + 3*time.Minute; status.TTL() < least {
			t.Errorf("remembered for %s, and messages are accepted for %s", status.TTL(), least)
		}
		// A bucket that forgets too early protects nothing.
		_, err = replicas[0].Take(t.Context(), "agent://buyer", "m-late", time.Now().Add(time.Hour))
		if e := new(once.Error); !errors.As(err, &e) || e.Cause != "" {
			t.Errorf("a message that is valid for longer than it is remembered: %v", err)
		}
	})
}

// A bucket that an operator has made, and that forgets messages while they may still be
// accepted, takes none until it has been mended.
func TestMessagesForgottenEarly(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	js := jetStream(t, url)
	config := once.MessagesConfig("messages", 1)
	right := config.TTL
	config.TTL = time.Minute
	_, err := js.CreateKeyValue(t.Context(), config)
	ok(t, err)
	m := once.NewMessages(once.Options{JetStream: js, Bucket: "messages", Provisioned: true, Timeout: 20 * time.Second})
	take := func() error {
		_, err := m.Take(t.Context(), "agent://buyer", "m", time.Now().Add(time.Second))
		return err
	}
	for doing, err := range map[string]error{"take": take(), "check": m.Check(t.Context())} {
		if e := new(once.Error); !errors.As(err, &e) || e.Cause != once.CauseSettings {
			t.Errorf("%s: %v", doing, err)
		}
	}
	config.TTL = right
	_, err = js.UpdateKeyValue(t.Context(), config)
	ok(t, err)
	ok(t, m.Check(t.Context()))
	ok(t, take())
}

// A captured message does not run again because the server was started again.
func TestMessagesSurviveTheServer(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, withJetStream)
	until := time.Now().Add(time.Minute)
	first, err := memory(t, s.URL()).Take(t.Context(), "agent://buyer", "m", until)
	if err != nil || !first {
		t.Fatal(first, err)
	}
	s.Stop()
	s.Start()
	if first, err := memory(t, s.URL()).Take(t.Context(), "agent://buyer", "m", until); err != nil || first {
		t.Errorf("accepted again: %v, %v", first, err)
	}
}

func BenchmarkTake(b *testing.B) {
	m := memory(b, natstest.Run(b, withJetStream).URL())
	for i := 0; b.Loop(); i++ {
		if first, err := m.Take(b.Context(), "agent://buyer", fmt.Sprint(i), time.Now()); err != nil || !first {
			b.Fatal(first, err)
		}
	}
}
