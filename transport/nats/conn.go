package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport"
)

// Kind is the scheme of NATS addresses.
const Kind = "nats"

// A Conn is one connection to a NATS system. It implements
// [transport.Transport], and is safe for concurrent use.
type Conn struct {
	nc         *natsgo.Conn
	log        *slog.Logger
	maxPending int
	roundTrip  time.Duration // bounds waiting for the server's word on a subscription
	ended      chan struct{} // closed when nats.go makes no more callbacks

	// What calls ask about the connection. nats.go itself answers under a lock that
	// it holds while it dials, for up to Options.ConnectTimeout.
	up         atomic.Bool
	maxPayload atomic.Int64
	mayNotAsk  atomic.Bool // whether somebody listens at an inbox

	mu     sync.Mutex
	closed bool                       // guarded by mu
	subs   map[*subscription]struct{} // guarded by mu
}

var _ transport.Transport = (*Conn)(nil)

// Connect connects to a NATS system. It fails when no server answers within
// Options.ConnectTimeout each or before ctx ends; later the
// connection mends itself. Errors are [*transport.Error] with the codes
// Disconnected, Denied (the credentials are not accepted) and Failed (the
// options are wrong).
func Connect(ctx context.Context, opts Options) (*Conn, error) {
	r, err := opts.resolve()
	if err != nil {
		return nil, &transport.Error{Code: transport.Failed, Op: "connect", Cause: err}
	}
	timeout := r.ConnectTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	if ctx.Err() != nil || timeout <= 0 {
		return nil, &transport.Error{Code: transport.Failed, Op: "connect", Cause: context.Cause(ctx)}
	}
	c := &Conn{
		log: r.Logger, maxPending: r.MaxPending, roundTrip: r.ConnectTimeout,
		ended: make(chan struct{}), subs: map[*subscription]struct{}{},
	}
	options := append(r.natsOptions(), natsgo.Timeout(timeout),
		natsgo.DisconnectErrHandler(c.disconnected), natsgo.ReconnectHandler(c.reconnected),
		natsgo.ErrorHandler(c.asyncError), natsgo.ClosedHandler(c.closedHandler))
	c.nc, err = natsgo.Connect(strings.Join(r.Servers, ","), options...)
	if err != nil {
		return nil, &transport.Error{Code: connectCode(err), Op: "connect", Topic: r.redactedServers(), Cause: err}
	}
	c.maxPayload.Store(c.nc.MaxPayload())
	// It may have been lost already: then the callback comes, or has come, after this.
	c.up.Store(true)
	if !c.nc.IsConnected() {
		c.up.Store(false)
	}
	c.log.Info("connected to NATS", "server", c.nc.ConnectedUrlRedacted())
	return c, nil
}

// Kind returns "nats".
func (c *Conn) Kind() string { return Kind }

// MaxMessageBytes returns the server's max_payload.
func (c *Conn) MaxMessageBytes() int { return int(c.maxPayload.Load()) }

// Client is the connection underneath, for what is NATS's own and no transport's.
// It must not be closed or drained, but by [Conn.Close] and [Conn.Drain].
func (c *Conn) Client() *natsgo.Conn { return c.nc }

// JetStream is the server's JetStream, over this connection. That there is one shows
// when it is used.
func (c *Conn) JetStream() (jetstream.JetStream, error) {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return nil, &transport.Error{Code: transport.Failed, Op: "jetstream", Cause: err}
	}
	return js, nil
}

// Ended is closed when the connection has ended for good: after Close, or because
// the server has said something that no later connection could mend. Credentials
// that are refused are none of that: they may be good again after a rotation.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Err is nil while the connection stands, and otherwise says why it does not.
func (c *Conn) Err() error {
	switch {
	case c.isClosed():
		return &transport.Error{Code: transport.Closed, Op: "connection"}
	case !c.up.Load():
		return &transport.Error{Code: transport.Disconnected, Op: "connection", Cause: natsgo.ErrConnectionReconnecting}
	}
	return nil
}

// Publish implements [transport.Transport]. It waits for nothing but room in the
// connection's buffer, and for that at most Options.WriteTimeout.
func (c *Conn) Publish(ctx context.Context, m transport.Message) error {
	if err := ctx.Err(); err != nil {
		return &transport.Error{Code: transport.Failed, Op: "publish", Topic: m.Topic, Cause: err}
	}
	if err := transport.CheckTopic("publish", m.Topic); err != nil {
		return err
	}
	if !c.up.Load() && !c.isClosed() {
		return &transport.Error{Code: transport.Disconnected, Op: "publish", Topic: m.Topic, Cause: natsgo.ErrConnectionReconnecting}
	}
	if m.Reply == "" {
		return c.wrap("publish", m.Topic, c.nc.Publish(m.Topic, m.Data))
	}
	if err := transport.CheckTopic("publish", m.Reply); err != nil {
		return err
	}
	return c.wrap("publish", m.Topic, c.nc.PublishRequest(m.Topic, m.Reply, m.Data))
}

// Subscribe implements [transport.Transport].
func (c *Conn) Subscribe(topic, group string, h transport.Handler) (transport.Subscription, error) {
	if err := transport.CheckTopic("subscribe", topic); err != nil {
		return nil, err
	}
	s := newSubscription(c, topic, h)
	if err := s.start("subscribe", topic, group); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenInbox implements [transport.Transport].
func (c *Conn) OpenInbox(h transport.Handler) (transport.Inbox, error) {
	name := c.nc.NewInbox()
	s := newSubscription(c, name+".*", withoutQuestions(h))
	s.prefix = name + "."
	if err := s.start("inbox", s.topic, ""); err != nil {
		return nil, err
	}
	return s, nil
}

// Drain implements [transport.Transport]. Publishing still works while the
// handlers finish, so that they can answer.
func (c *Conn) Drain(ctx context.Context) error {
	err := c.drain(ctx)
	return errors.Join(err, c.Close())
}

func (c *Conn) drain(ctx context.Context) error {
	subs := c.subscriptions()
	for _, s := range subs {
		s.endIntake()
	}
	for _, s := range subs {
		if err := s.finish(ctx); err != nil {
			return err
		}
	}
	if !c.nc.IsConnected() {
		return nil
	}
	// Closing a socket may lose what was written to it; the server's answer
	// to a ping says that it has read everything.
	ctx, cancel := context.WithTimeout(ctx, c.roundTrip)
	defer cancel()
	return c.wrap("drain", "", c.nc.FlushWithContext(ctx))
}

// Close implements [transport.Transport].
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.nc.Close()
	for _, s := range c.subscriptions() {
		_ = s.Close() // has no error to tell
	}
	<-c.ended
	return nil
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *Conn) subscriptions() []*subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*subscription, 0, len(c.subs))
	for s := range c.subs {
		out = append(out, s)
	}
	return out
}

// disconnected runs after every message that the broken connection brought is
// in its subscription's queue.
func (c *Conn) disconnected(_ *natsgo.Conn, err error) {
	c.up.Store(false)
	if c.isClosed() {
		return
	}
	c.log.Warn("connection to NATS lost", "error", err)
	c.notify("", transport.Disconnected)
}

func (c *Conn) reconnected(nc *natsgo.Conn) {
	c.maxPayload.Store(nc.MaxPayload())
	c.up.Store(true)
	c.log.Info("connected to NATS again", "server", nc.ConnectedUrlRedacted())
}

// closedHandler is the last callback.
func (c *Conn) closedHandler(nc *natsgo.Conn) {
	if !c.isClosed() {
		c.log.Error("NATS connection ended for good", "error", nc.LastError())
		c.notify("", transport.Disconnected)
	}
	close(c.ended)
}

func (c *Conn) asyncError(nc *natsgo.Conn, sub *natsgo.Subscription, err error) {
	switch {
	case errors.Is(err, natsgo.ErrSlowConsumer):
		dropped, _ := sub.Dropped()
		c.log.Error("messages dropped: the subscription is full", "topic", sub.Subject, "dropped", dropped)
	case errors.Is(err, natsgo.ErrPermissionViolation) && asksAlive(forbiddenTopic(err)):
		if !c.mayNotAsk.Swap(true) {
			c.log.Warn("the NATS server does not let this agent ask whether callers are there: skills of callers that died run to their deadline", "error", err)
		}
	case errors.Is(err, natsgo.ErrPermissionViolation):
		c.log.Error("the NATS server's permissions forbid it", "error", err)
		if topic := forbiddenTopic(err); topic != "" {
			c.notify(topic, transport.Denied)
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		// Bytes that could not be written are gone: so is the connection.
		c.log.Error("the NATS server takes no bytes", "error", err)
		_ = nc.ForceReconnect()
	default:
		c.log.Error("NATS error", "error", err)
	}
}

// notify queues a notice behind what every inbox has got.
func (c *Conn) notify(topic string, code transport.Code) {
	for _, s := range c.subscriptions() {
		if s.prefix != "" {
			s.push(notice(topic, code))
		}
	}
}

// forbiddenTopic is the subject that the server let nobody publish to.
func forbiddenTopic(err error) string {
	_, rest, ok := strings.Cut(err.Error(), `Publish to "`)
	if !ok {
		return ""
	}
	topic, _, _ := strings.Cut(rest, `"`)
	return topic
}

// refused is the server's word against a subscription, or nil. The server says it
// before it answers the ping that follows a subscription.
func (c *Conn) refused(subject string) error {
	err := c.nc.LastError()
	if errors.Is(err, natsgo.ErrPermissionViolation) && strings.Contains(err.Error(), "Subscription to "+strconv.Quote(subject)) {
		return err
	}
	return nil
}

// wrap translates an error of nats.go, once.
func (c *Conn) wrap(op, topic string, err error) error {
	if err == nil {
		return nil
	}
	code := transport.Disconnected
	switch {
	case c.isClosed():
		code = transport.Closed
	case errors.Is(err, natsgo.ErrMaxPayload):
		code = transport.TooLarge
	case errors.Is(err, natsgo.ErrBadSubject), errors.Is(err, natsgo.ErrBadQueueName):
		code = transport.BadTopic
	case errors.Is(err, natsgo.ErrPermissionViolation):
		code = transport.Denied
	}
	return &transport.Error{Code: code, Op: op, Topic: topic, Cause: err}
}

func connectCode(err error) transport.Code {
	if errors.Is(err, natsgo.ErrAuthorization) || errors.Is(err, natsgo.ErrAuthExpired) ||
		errors.Is(err, natsgo.ErrAuthRevoked) || errors.Is(err, natsgo.ErrAccountAuthExpired) {
		return transport.Denied
	}
	return transport.Disconnected
}

func (c *Conn) String() string {
	return fmt.Sprintf("nats connection to %s", c.nc.ConnectedUrlRedacted())
}
