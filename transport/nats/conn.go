package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// Kind is the scheme of NATS addresses.
const Kind = "nats"

// A Conn is one connection to a NATS system. It implements
// [transport.Transport], and is safe for concurrent use.
type Conn struct {
	nc         *natsgo.Conn
	log        *slog.Logger
	jsPrefix   string // of an imported JetStream API, or ""
	maxPending int
	// maxPendingBytes bounds what waits beside maxPending, where that is ours to bound.
	maxPendingBytes int
	roundTrip       time.Duration // bounds waiting for the server to confirm something
	ended           chan struct{} // closed when nats.go makes no more callbacks

	// What calls need to know about the connection. nats.go could tell, but takes a
	// lock that it holds while it dials, for up to Options.ConnectTimeout: every call
	// would wait for a reconnection instead of failing at once.
	connected   atomic.Bool
	maxPayload  atomic.Int64
	probeDenied atomic.Bool              // the server forbids the probes of Listening
	lossCause   atomic.Pointer[TLSError] // why the last attempt to reconnect has failed; see watchLoss
	reconnects  atomic.Uint64

	tlsError func(error) error // see resolved
	watching sync.WaitGroup    // of watchLoss and renew; added to with mu, while not closed

	mu     sync.Mutex
	closed bool                       // guarded by mu
	again  chan struct{}              // closed by the next reconnection; guarded by mu
	subs   map[*subscription]struct{} // guarded by mu
	// renewing says that renew runs. Guarded by mu.
	renewing bool
}

var (
	_ transport.Transport = (*Conn)(nil)
	_ transport.Copier    = (*Conn)(nil)

	_ transport.Reconnecter = (*Conn)(nil)
)

// Connect connects to a NATS system. It fails when no server answers within
// Options.ConnectTimeout each or before ctx ends; a connection that breaks later is
// re-established in the background. Errors are [*transport.Error] with the codes
// Disconnected, Denied (the server rejects the credentials) and Failed (the options
// are wrong). With Disconnected, a [*TLSError] means that a server is there and that TLS
// fails. Files are read at each call, and those of certificates at each reconnection.
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
		log: r.Logger, jsPrefix: r.JetStreamPrefix, maxPending: r.MaxPending, maxPendingBytes: r.MaxPendingBytes, roundTrip: r.ConnectTimeout, tlsError: r.tlsError,
		ended: make(chan struct{}), again: make(chan struct{}), subs: map[*subscription]struct{}{},
	}
	back := newRoute(r.ReconnectWait)
	options := append(r.natsOptions(), natsgo.Timeout(timeout), natsgo.ReconnectToServer(back.next),
		natsgo.DisconnectErrHandler(c.disconnected), natsgo.ReconnectHandler(c.reconnected),
		natsgo.ErrorHandler(c.asyncError), natsgo.ClosedHandler(c.closedHandler))
	c.nc, err = natsgo.Connect(strings.Join(r.Servers, ","), options...)
	if err != nil {
		return nil, &transport.Error{Code: connectCode(err), Op: "connect", Topic: r.redactedServers(), Cause: r.tlsError(err)}
	}
	back.begin(c.nc.ConnectedUrl())
	c.maxPayload.Store(c.nc.MaxPayload())
	// The connection may be lost already. If the callback ran before the first Store,
	// the check sees it; if it runs after the check, it stores false itself.
	c.connected.Store(true)
	if !c.nc.IsConnected() {
		c.connected.Store(false)
	}
	c.log.Info("connected to NATS", "server", c.nc.ConnectedUrlRedacted())
	return c, nil
}

// Kind returns "nats".
func (c *Conn) Kind() string { return Kind }

// MaxMessageBytes returns the server's max_payload.
func (c *Conn) MaxMessageBytes() int { return int(c.maxPayload.Load()) }

// Client is the underlying connection, for features of NATS that a transport does not
// have. Only [Conn.Close] and [Conn.Drain] may close or drain it.
func (c *Conn) Client() *natsgo.Conn { return c.nc }

// JetStream is the server's JetStream, over this connection. It does not check that
// the server has one: the first use does.
func (c *Conn) JetStream() (jetstream.JetStream, error) {
	js, err := jetstream.NewWithAPIPrefix(c.nc, c.JetStreamAPI())
	if err != nil {
		return nil, &transport.Error{Code: transport.Failed, Op: "jetstream", Cause: err}
	}
	return js, nil
}

// JetStreamAPI is the parent subject of the JetStream API.
func (c *Conn) JetStreamAPI() string { return cmp.Or(c.jsPrefix, "$JS.API") }

// Provisioned reports whether what there is in JetStream belongs to an operator, see
// [Options].JetStreamPrefix.
func (c *Conn) Provisioned() bool { return c.jsPrefix != "" }

// Ended returns a channel that is closed when the connection has ended for good: after
// Close, or after a server error that no reconnection could repair. Rejected
// credentials do not end it, since they may become valid again by a rotation.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Err returns nil while there is a connection, and otherwise why there is none.
func (c *Conn) Err() error {
	switch {
	case c.isClosed():
		return &transport.Error{Code: transport.Closed, Op: "connection"}
	case !c.connected.Load():
		cause := natsgo.ErrConnectionReconnecting
		if why := c.lossCause.Load(); why != nil {
			cause = why
		}
		return &transport.Error{Code: transport.Disconnected, Op: "connection", Cause: cause}
	}
	return nil
}

// OwnsReply implements [transport.Transport]. See [OwnsReply].
func (c *Conn) OwnsReply(agent envelope.Address, topic string) bool { return OwnsReply(agent, topic) }

// Publish implements [transport.Transport]. It waits only for room in the connection's
// write buffer, and at most for Options.WriteTimeout.
func (c *Conn) Publish(ctx context.Context, m transport.Message) error {
	if err := ctx.Err(); err != nil {
		return &transport.Error{Code: transport.Failed, Op: "publish", Topic: m.Topic, Cause: err}
	}
	if err := transport.CheckTopic("publish", m.Topic); err != nil {
		return err
	}
	if !c.connected.Load() && !c.isClosed() {
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

// CopiesData implements [transport.Copier]: nats.go copies every message into its own
// buffer before it returns, whether or not there is a connection.
func (c *Conn) CopiesData() bool { return true }

// Subscribe implements [transport.Transport].
func (c *Conn) Subscribe(topic, group string, h transport.Handler) (transport.Subscription, error) {
	if err := transport.CheckTopic("subscribe", topic); err != nil {
		return nil, err
	}
	s := newSubscription(c, topic, c.maxPending, h)
	if err := s.start("subscribe", topic, group); err != nil {
		return nil, err
	}
	return s, nil
}

// maxHints is how many messages may wait for a handler of SubscribeHints. The queue of a
// subscription is a channel, which has its memory from the beginning: with the room of
// Subscribe, an agent that follows a thousand peers would hold 130 MB.
const maxHints = 64

// SubscribeHints is Subscribe for rare messages of which one may be lost: few of them wait,
// and those that find no room are dropped. It is for those who subscribe to very many topics.
func (c *Conn) SubscribeHints(topic string, h transport.Handler) (transport.Subscription, error) {
	if err := transport.CheckTopic("subscribe", topic); err != nil {
		return nil, err
	}
	s := newSubscription(c, topic, min(maxHints, c.maxPending), h)
	s.hints = true
	if err := s.start("subscribe", topic, ""); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenInbox implements [transport.Transport].
func (c *Conn) OpenInbox(h transport.Handler) (transport.Inbox, error) {
	name := c.nc.NewInbox()
	s := newSubscription(c, name+".*", c.maxPending, withoutProbes(h))
	s.prefix = name + "."
	if err := s.start("inbox", s.topic, ""); err != nil {
		return nil, err
	}
	return s, nil
}

// Drain implements [transport.Transport]. Publishing still works while the handlers
// finish, so that they can reply.
func (c *Conn) Drain(ctx context.Context) error {
	err := c.drain(ctx)
	return errors.Join(err, c.Close())
}

func (c *Conn) drain(ctx context.Context) error {
	// All subscriptions stop before any is waited for, so that they drain together.
	subs := c.subscriptions()
	for _, s := range subs {
		s.stopIntake()
	}
	for _, s := range subs {
		if err := s.finish(ctx); err != nil {
			return err
		}
	}
	if !c.nc.IsConnected() {
		return nil // there is nobody to flush the last replies to
	}
	// Closing a socket may discard bytes that the server has not read. Its answer to a
	// ping proves that it has read everything before it.
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
		_ = s.Close() // never fails
	}
	<-c.ended // no callback of nats.go runs after Close has returned
	c.watching.Wait()
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

// wrap translates an error of nats.go. It is the only place that does, but for
// [connectCode]: elsewhere errors are ours.
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

// connectCode translates an error of connecting. Only rejected credentials are
// Denied: everything else may pass when a server comes up.
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
