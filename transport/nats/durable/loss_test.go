package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/durable"
)

const (
	requestsStream = "AGENTD_REQUESTS_callee_v2"
	resultsStream  = "AGENTD_RESULTS_callee_v2"
	deadStream     = "AGENTD_DEAD_callee_v2"
)

func jetStream(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	js, err := connect(t, url).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// eachLoss calls test with what can be lost on a broker while agents run.
func eachLoss(t *testing.T, test func(t *testing.T, url string, lose func())) {
	for _, what := range []string{"the consumer", "stream " + requestsStream, "stream " + resultsStream, "stream " + deadStream, "everything"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			natstest.EachVersion(t, "jetstream {}", func(t *testing.T, url string) {
				js := jetStream(t, url)
				streams := []string{requestsStream, resultsStream, deadStream, "KV_agentd-calls-caller"}
				if stream, ok := strings.CutPrefix(what, "stream "); ok {
					streams = []string{stream}
				}
				test(t, url, func() {
					if what == "the consumer" {
						if err := js.DeleteConsumer(t.Context(), requestsStream, "agentd"); err != nil {
							t.Fatal(err)
						}
						return
					}
					for _, stream := range streams {
						if err := js.DeleteStream(t.Context(), stream); err != nil {
							t.Fatal(err)
						}
					}
				})
			})
		})
	}
}

// An operator deletes what agents use, or the server comes back without its storage. The
// agents make it again, and no attempt of the calls that follow is lost.
func TestLostStreamsAreMadeAgain(t *testing.T) {
	t.Parallel()
	eachLoss(t, func(t *testing.T, url string, lose func()) {
		var runs atomic.Int64
		m := serve(t, durable.Options{MaxDeliver: 1}, echo(&runs), url)
		c := client(t, url)
		if r, err := await(t, c, start(t, c, 1)); err != nil {
			t.Fatalf("%+v, %v", r, err)
		}
		// A message that is no request becomes a dead letter.
		spoil := func() {
			if err := connect(t, url).Publish(t.Context(), transport.Message{Topic: topic + ".durable", Data: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		spoil()
		letters(t, m.mailbox, 1)
		lose()
		var kept int
		for _, err := range m.mailbox.Letters(t.Context()) {
			if err == nil {
				kept++
			}
		}
		var id string
		eventually.Succeeds(t, "a call is queued", func() error {
			r, err := c.RequestAgent(t.Context(), request(2, rpc.ModeAsync, 0))
			id = r.CorrelationID
			return err
		})
		if r, err := await(t, c, id); err != nil || string(r.Response) != `{"n":2}` {
			t.Errorf("%+v, %v", r, err)
		}
		spoil() // for this letter the third stream is there
		eventually.Succeeds(t, "another dead letter is kept", func() error {
			now := 0
			for _, err := range m.mailbox.Letters(t.Context()) {
				if err != nil {
					return err
				}
				now++
			}
			if now != kept+1 {
				return fmt.Errorf("%d letters, and before %d", now, kept)
			}
			return nil
		})
		if runs.Load() != 2 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// Whoever runs the agent is told while its queue cannot be opened, and when that is over.
func TestTroubleIsReported(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	reports := make(chan error, 100)
	serve(t, durable.Options{Trouble: func(err error) { reports <- err }}, echo(&runs), s.URL())
	js := jetStream(t, s.URL())
	other := jetstream.StreamConfig{Name: requestsStream, Subjects: []string{topic + ".durable"}, MaxAge: time.Hour}
	// On a slow machine the agent may make it again first.
	eventually.Succeeds(t, "the stream is another one", func() error {
		if err := js.DeleteStream(t.Context(), requestsStream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		_, err := js.CreateStream(t.Context(), other)
		return err
	})
	var setting *durable.SettingError
	for err := range reports {
		if errors.As(err, &setting) {
			break
		}
	}
	if setting.Stream != requestsStream {
		t.Errorf("reported: %v", setting)
	}
	if err := js.DeleteStream(t.Context(), requestsStream); err != nil {
		t.Fatal(err)
	}
	for err := range reports {
		if err == nil {
			break
		}
	}
	c := client(t, s.URL())
	if r, err := await(t, c, start(t, c, 1)); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// An operator takes the permission for pull requests away, which the server answers with
// nothing at all. That is reported, and its end when the permission comes back.
func TestForbiddenPullsAreReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nats.conf")
	write := func(denied string) {
		conf := fmt.Sprintf(`jetstream {}
no_auth_user: u
authorization {users: [{user: u, password: p, permissions: {publish: {allow: ">"%s}}}]}`, denied)
		if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	s := natstest.RunFile(t, path)
	var runs atomic.Int64
	reports := make(chan error, 1000)
	serve(t, durable.Options{Trouble: func(err error) { reports <- err }}, echo(&runs), s.URL())
	write(`, deny: "$JS.API.CONSUMER.MSG.NEXT.>"`)
	s.Restart()
	if err := <-reports; err == nil {
		t.Error("an end is reported, and no beginning")
	}
	write("")
	s.Restart()
	for err := range reports {
		if err == nil {
			break
		}
	}
	c := client(t, s.URL())
	if r, err := await(t, c, start(t, c, 1)); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// A replica that gets heartbeats and a request at once, after a pause, loses none of them.
func TestRequestBehindHeartbeats(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	proxy := natstest.NewProxy(t, s.Addr())
	dropped := make(chan string, 10)
	log := slog.New(onError{dropped})
	conn := connectLogged(t, log, proxy.URL())
	mailbox, err := durable.OpenMailbox(t.Context(), topic, durable.Options{Conn: conn, Agent: calleeAddr.ID()})
	if err != nil {
		t.Fatal(err)
	}
	attempts := make(chan int, 1)
	r, err := mailbox.Receive(topic, 1, func(d transport.Delivery) {
		attempts <- d.Attempt()
		if err := d.Done(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	js := jetStream(t, s.URL())
	consumer, err := js.Consumer(t.Context(), requestsStream, "agentd")
	if err != nil {
		t.Fatal(err)
	}
	waiting := func() int {
		info, err := consumer.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.NumWaiting
	}
	eventually.Holds(t, "a pull request is at the server", func() bool { return waiting() == 1 })
	heartbeats := make(chan struct{}, 100)
	tap, err := connect(t, s.URL()).Client().Subscribe("_INBOX.>", func(m *natsgo.Msg) {
		if m.Header.Get("Status") == "100" {
			heartbeats <- struct{}{}
		}
	})
	if err == nil {
		defer func() { _ = tap.Unsubscribe() }()
	}
	if err != nil {
		t.Fatal(err)
	}
	proxy.Stall()
	for range 3 { // one may have passed
		<-heartbeats
	}
	if _, err := js.Publish(t.Context(), topic+".durable", []byte("a request")); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "it is delivered", func() bool { return waiting() == 0 })
	proxy.Resume()
	select {
	case attempt := <-attempts:
		if attempt != 1 {
			t.Errorf("attempt %d", attempt)
		}
	case line := <-dropped:
		t.Error(line)
	}
}

// What a stranger publishes with the header of a status of the broker is a message like any
// other: a dead letter, and no word about the queue.
func TestForeignStatus(t *testing.T) {
	t.Parallel()
	natstest.EachVersion(t, "jetstream {}", func(t *testing.T, url string) {
		var runs atomic.Int64
		m := serve(t, durable.Options{Trouble: func(err error) { t.Error(err) }}, echo(&runs), url)
		for _, status := range []string{"100", "404", "503"} {
			if err := connect(t, url).Client().PublishMsg(&natsgo.Msg{Subject: topic + ".durable", Header: natsgo.Header{"Status": {status}}}); err != nil {
				t.Fatal(err)
			}
		}
		letters(t, m.mailbox, 3)
		c := client(t, url)
		if r, err := await(t, c, start(t, c, 1)); err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A delivery that reaches nobody counts at the broker. It is no attempt: a request that
// may be tried once is run once, and no dead letter.
func TestUnseenDeliveriesAreNoAttempts(t *testing.T) {
	t.Parallel()
	natstest.EachVersion(t, "jetstream {}", func(t *testing.T, url string) {
		opts := durable.Options{MaxDeliver: 1, AckWait: time.Second}
		unseen := make(chan struct{}, 10)
		stop := takes(t, opts, func(transport.Delivery) { unseen <- struct{}{} }, url) // as if it had never arrived
		c := client(t, url)
		id := start(t, c, 1)
		for range 3 {
			<-unseen
		}
		stop()
		var runs atomic.Int64
		m := serve(t, opts, echo(&runs), url)
		if r, err := await(t, c, id); err != nil || string(r.Response) != `{"n":1}` || runs.Load() != 1 {
			t.Errorf("%+v, %v, after %d runs", r, err, runs.Load())
		}
		letters(t, m.mailbox, 0)
	})
}

// Of two deliveries of which one was believed lost, one begins the last attempt. The mark
// survives a put-back of a delivery of which nobody has looked at it.
func TestLastAttemptBeginsOnce(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	opts := durable.Options{MaxDeliver: 1, AckWait: time.Second}
	deliveries := make(chan transport.Delivery, 10)
	for range 2 {
		defer takes(t, opts, func(d transport.Delivery) { deliveries <- d }, s.URL())()
	}
	c := client(t, s.URL())
	id := start(t, c, 1)
	key := transport.CallKey{Caller: callerAddr, Callee: calleeAddr, CorrelationID: id}
	first, again := <-deliveries, <-deliveries
	spent := func(d transport.Delivery, want bool) {
		t.Helper()
		if got, err := d.Spent(t.Context(), key); got != want || err != nil {
			t.Errorf("spent: %v, %v", got, err)
		}
	}
	begins := func(d transport.Delivery, want bool) {
		t.Helper()
		if got, err := d.Begin(t.Context(), key); got != want || err != nil {
			t.Errorf("begins: %v, %v", got, err)
		}
	}
	spent(first, false)
	spent(again, false)
	begins(first, true)
	begins(again, false)
	third := <-deliveries
	if err := third.PutBack(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	d := <-deliveries
	e, err := envelope.Decode(d.Data())
	if err != nil || e.CorrelationID != id {
		t.Fatal(err)
	}
	spent(d, true)
	if err := d.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// onError is a log of which only the errors are read.
type onError struct{ lines chan<- string }

func (onError) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (h onError) WithAttrs([]slog.Attr) slog.Handler         { return h }
func (h onError) WithGroup(string) slog.Handler              { return h }
func (h onError) Handle(_ context.Context, r slog.Record) error {
	h.lines <- fmt.Sprint(r.Level, " ", r.Message)
	return nil
}
