package caller

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/id"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/rpc/span"
	"github.com/agentd/agentd/transport"
)

// A Config describes a [Client].
type Config struct {
	// Self is the calling agent. Required.
	Self envelope.Address
	// Peers are the agents that it may call. Required.
	Peers rpc.PeerTable
	// Transports carry the calls, at most one of each kind. The client opens an
	// inbox on each; it does not close them.
	Transports []transport.Transport
	// Queues keep durable calls, by transport kind. A kind without one has no
	// asynchronous calls.
	Queues map[string]transport.CallQueue
	// Checks decide which calls are made.
	Checks Checks
	// Records keep what the client must account for.
	Records rpc.Records
	// Limits bound what one client does. Zero fields have defaults.
	Limits Limits
	// Identity proves what this agent sends and checks what it receives. Nil sends
	// bare claims, and accepts them.
	Identity rpc.Identity
	// TenantID is the tenant of the calls that name none and are part of no other.
	TenantID string
	// FleetVersion is sent as x-fleet-version, if set.
	FleetVersion string
	// Tracer takes the spans of sampled calls. Nil makes none.
	Tracer span.Tracer
	// Logger gets what no caller learns: replies that match no call. Default:
	// discarded.
	Logger *slog.Logger
}

// Checks are the decisions on the way of a call. Every one may be nil.
type Checks struct {
	// Authorizer decides which calls may be made. Nil allows every peer.
	Authorizer rpc.Authorizer
	// Origins decides about calls with an origin in the place of Authorizer. Nil with an
	// Authorizer denies them.
	Origins rpc.OriginAuthorizer
	// Approver asks a person where the Authorizer demands it. Nil denies such calls.
	Approver rpc.Approver
	// Gate catches schema drift before the first call.
	Gate Gate
	// Limiter bounds calls over time.
	Limiter rpc.Limiter
	// Breakers keep calls away from peers that fail too often.
	Breakers *policy.Breakers
}

// Limits bound what one client does.
type Limits struct {
	// MaxPending bounds the calls that wait for replies. Default 10,000.
	MaxPending int
	// MaxPayloadBytes bounds payloads. Default 1 MiB.
	MaxPayloadBytes int
	// MaxHops bounds the length of a chain of nested calls. Default 16.
	MaxHops int
}

const defaultMaxPending = 10_000

func (l Limits) withDefaults() Limits {
	if l.MaxPending <= 0 {
		l.MaxPending = defaultMaxPending
	}
	if l.MaxPayloadBytes <= 0 {
		l.MaxPayloadBytes = rpc.DefaultMaxPayloadBytes
	}
	if l.MaxHops <= 0 {
		l.MaxHops = rpc.DefaultMaxHops
	}
	return l
}

// A Client is the caller's end of calls. It is safe for concurrent use.
type Client struct {
	cfg        Config
	transports map[string]replyingTransport // by kind; complete once opened is closed
	opened     chan struct{}
	pending    *pendingTable
	detached   *detachedCalls
	limits     atomic.Pointer[Limits] // complete; cfg.Limits has those of New
	verifier   *check.Verifier
	ids        id.Source
	buffers    wire.Buffers
	spare      sync.Pool // of *call, with their zero values
	topics     replyTopics
	replies    replies
	stale      atomic.Uint64
	lines      policy.Sampler // which ignored replies get a line in the log
	silences   silences
	followed   followed
	resends    *resends
	awaited    awaited
}

// A replyingTransport is a transport with this client's reply inbox on it.
type replyingTransport struct {
	transport.Transport
	inbox transport.Inbox
}

// New opens a reply inbox on every transport of cfg.
func New(cfg Config) (*Client, error) {
	if _, err := envelope.ParseAddress(string(cfg.Self)); err != nil {
		return nil, fmt.Errorf("caller: Self: %w", err)
	}
	if cfg.Peers == nil {
		return nil, errors.New("caller: Peers is required")
	}
	if err := check.Tenant(cfg.TenantID); err != nil {
		return nil, fmt.Errorf("caller: TenantID: %w", err)
	}
	if err := check.Complete(cfg.Records, cfg.Checks.Authorizer != nil || cfg.Checks.Limiter != nil); err != nil {
		return nil, fmt.Errorf("caller: %w", err)
	}
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		cfg: cfg, transports: map[string]replyingTransport{}, opened: make(chan struct{}),
		pending: newPendingTable(cfg.Limits.MaxPending), detached: newDetachedCalls(cfg.Limits.MaxPending), verifier: check.NewVerifier(rpc.RoleCaller, cfg.Identity, cfg.Records),
		resends: newResends(),
	}
	c.lines.PerSecond = linesPerSecond
	c.SetLimits(cfg.Limits)
	err := c.openInboxes()
	// Also after an error: handlers of the inboxes that are open wait for it, and
	// Close waits for them.
	close(c.opened)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// SetLimits replaces the limits of calls that begin from now on.
func (c *Client) SetLimits(l Limits) {
	l = l.withDefaults()
	c.limits.Store(&l)
	c.pending.setCapacity(l.MaxPending)
}

// openInboxes subscribes to replies. A transport may deliver before the map of
// transports is complete, so its handler waits for that.
func (c *Client) openInboxes() error {
	for _, t := range c.cfg.Transports {
		if _, twice := c.transports[t.Kind()]; twice {
			return fmt.Errorf("caller: two transports of kind %q", t.Kind())
		}
		inbox, err := t.OpenInbox(func(m transport.Message) {
			<-c.opened
			c.receive(t.Kind(), m)
		})
		if err != nil {
			return fmt.Errorf("caller: %w", err)
		}
		c.transports[t.Kind()] = replyingTransport{Transport: t, inbox: inbox}
	}
	return nil
}

// Close ends every pending call as abandoned, refuses new ones and closes the
// reply inboxes. It may be called twice.
func (c *Client) Close() error {
	// Pending calls end first, so that none of them waits for an inbox that no
	// longer exists.
	c.pending.abandon()
	c.detached.close()
	c.resends.close()
	errs := []error{c.followed.close()}
	for _, t := range c.transports {
		errs = append(errs, t.inbox.Close())
	}
	return errors.Join(errs...)
}

// Dropped is the number of messages that the transports have dropped because replies came
// faster than they could be taken. Their calls end at their deadlines.
func (c *Client) Dropped() (n uint64) {
	for _, t := range c.transports {
		n += t.inbox.Dropped()
	}
	return n
}

// Pending is the number of calls that wait for a reply.
func (c *Client) Pending() int { return c.pending.len() }

// Stale counts the replies that completed no call: late, repeated or forged.
func (c *Client) Stale() uint64 { return c.stale.Load() }
