package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport"
)

const (
	defaultMaxPending      = 10_000
	defaultMaxPayloadBytes = 1 << 20
	envelopeDepth          = envelope.MaxDepth
)

// A ClientConfig says what a [Client] is made of.
type ClientConfig struct {
	// Self is the agent that calls. Required.
	Self envelope.Address
	// Peers are the agents that it may call. Required.
	Peers PeerTable
	// Transports carry the calls, at most one of each kind. The client opens an
	// inbox on each; it does not close them.
	Transports []transport.Transport
	// Queues keep calls, by transport kind. Without one for a kind there are no
	// asynchronous calls by it.
	Queues map[string]transport.CallQueue
	// Auditor keeps schema violations. Required.
	Auditor Auditor
	// Authorizer decides which calls may be made. Nil allows every peer.
	Authorizer Authorizer
	// Limiter bounds calls over time. Nil is no limit.
	Limiter Limiter
	// Identity proves what this agent sends, and checks what it gets. Nil sends
	// bare claims, and takes them.
	Identity Identity
	// Refusals keeps what Authorizer, Limiter and Identity refuse. Required with
	// the first two.
	Refusals RefusalAuditor
	// Approver asks a person where Authorizer says so. Nil denies such calls.
	Approver Approver
	// Breakers leave peers alone that fail too often. Nil leaves out none.
	Breakers *policy.Breakers
	// Access hears of every call. Nil is no access log.
	Access AccessLog
	// Gate catches schema drift before the first call. Nil is no gate.
	Gate Gate
	// TenantID is stamped on every request, unless a nested call has its own.
	TenantID string
	// FleetVersion is sent as x-fleet-version, when set.
	FleetVersion string
	// MaxPending bounds the calls that wait for replies. Default 10,000.
	MaxPending int
	// MaxPayloadBytes bounds payloads. Default 1 MiB.
	MaxPayloadBytes int
	// MaxHops bounds how many calls may lead to one another. Default 16.
	MaxHops int
	// Logger gets what no caller hears of: replies that nobody waits for.
	// Default: discarded.
	Logger *slog.Logger
}

// A Client is the caller's end of calls. It is safe for concurrent use.
type Client struct {
	cfg     ClientConfig
	lines   map[string]line // by transport kind; complete once opened is closed
	opened  chan struct{}
	pending *pendingTable
	prover  *prover
	ids     idSource
	stale   atomic.Uint64
}

// A line is a transport and this process's reply inbox on it.
type line struct {
	transport transport.Transport
	inbox     transport.Inbox
}

// NewClient opens a reply inbox on every transport of cfg.
func NewClient(cfg ClientConfig) (*Client, error) {
	if _, err := envelope.ParseAddress(string(cfg.Self)); err != nil {
		return nil, fmt.Errorf("rpc: client: Self: %w", err)
	}
	switch {
	case cfg.Peers == nil:
		return nil, errors.New("rpc: client: Peers is required")
	case cfg.Auditor == nil:
		return nil, errors.New("rpc: client: Auditor is required")
	case cfg.Refusals == nil && (cfg.Authorizer != nil || cfg.Limiter != nil):
		return nil, errors.New("rpc: client: Refusals is required with an Authorizer or a Limiter")
	}
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = defaultMaxPending
	}
	if cfg.MaxPayloadBytes <= 0 {
		cfg.MaxPayloadBytes = defaultMaxPayloadBytes
	}
	if cfg.MaxHops <= 0 {
		cfg.MaxHops = DefaultMaxHops
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		cfg: cfg, lines: map[string]line{}, opened: make(chan struct{}), pending: newPendingTable(cfg.MaxPending),
		prover: newProver(cfg.Identity, cfg.Refusals),
	}
	err := c.openInboxes()
	close(c.opened)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Client) openInboxes() error {
	for _, t := range c.cfg.Transports {
		if _, twice := c.lines[t.Kind()]; twice {
			return fmt.Errorf("rpc: client: two transports of kind %q", t.Kind())
		}
		inbox, err := t.OpenInbox(func(m transport.Message) {
			<-c.opened
			c.receive(t.Kind(), m)
		})
		if err != nil {
			return fmt.Errorf("rpc: client: %w", err)
		}
		c.lines[t.Kind()] = line{transport: t, inbox: inbox}
	}
	return nil
}

// Close ends every pending call as abandoned, refuses new ones and closes the
// reply inboxes. It may be called twice.
func (c *Client) Close() error {
	c.pending.abandon()
	var errs []error
	for _, l := range c.lines {
		errs = append(errs, l.inbox.Close())
	}
	return errors.Join(errs...)
}

// Pending is how many calls wait for a reply now.
func (c *Client) Pending() int { return c.pending.len() }

// Stale counts the replies that settled nothing: late, repeated or forged.
func (c *Client) Stale() uint64 { return c.stale.Load() }

// receive takes one message of a reply inbox.
func (c *Client) receive(kind string, m transport.Message) {
	token, ok := c.lines[kind].inbox.Token(m.Topic)
	switch {
	case !ok && m.Err != nil:
		c.fail(kind, m)
		return
	case !ok:
		c.ignore("", "not a topic of this inbox")
		return
	}
	call, ok := c.pending.find(token)
	if !ok {
		c.ignore(token, "nobody waits for it")
		return
	}
	if m.Err != nil {
		c.pending.settle(call, outcome{err: transportError(m.Err, call.peer)})
		return
	}
	reply, err := envelope.Decode(m.Data)
	if err != nil {
		c.ignore(token, err.Error())
		return
	}
	if reply.Kind == envelope.Event {
		c.progress(call, token, reply)
		return
	}
	if why := c.unbound(call, reply, envelope.Response); why != "" {
		c.ignore(token, why)
		return
	}
	if _, err := c.prover.verify(reply); err != nil {
		c.unproven(call, reply, err)
		return
	}
	if !c.pending.settle(call, outcome{reply: reply}) {
		c.ignore(token, "nobody waits for it any more")
	}
}

// fail ends the calls that a transport's notice is about: those to its topic, or
// all by that transport.
func (c *Client) fail(kind string, notice transport.Message) {
	for _, call := range c.pending.take(func(p *pendingCall) bool {
		return p.transport == kind && (notice.Topic == "" || notice.Topic == p.topic)
	}) {
		call.outcome <- outcome{err: transportError(notice.Err, call.peer)}
	}
}

// unproven drops a reply. It does not end the call, or whoever learns a reply
// topic could end calls: the real reply may still come.
func (c *Client) unproven(call binding, reply *envelope.Envelope, err error) {
	c.pending.distrust(call)
	c.ignore(call.correlationID, err.Error())
	if err := c.prover.refused(context.Background(), RoleCaller, reply, err); err != nil {
		c.cfg.Logger.Error("refused proof not recorded", "correlationId", call.correlationID, "error", err)
	}
}

// unbound says why reply is not what call waits for, or "". Whoever learns a
// reply topic can publish on it; only the peer that was called may answer.
func (c *Client) unbound(call binding, reply *envelope.Envelope, kind envelope.Kind) string {
	switch {
	case reply.Kind != kind:
		return "not a " + string(kind)
	case reply.From != call.peer:
		return "not from the peer that was called"
	case reply.To != c.cfg.Self:
		return "not for this agent"
	case reply.CorrelationID != call.correlationID:
		return "another correlation id"
	case reply.TenantID != call.tenantID:
		return "of another tenant"
	case reply.CausedBy != "" && reply.CausedBy != call.messageID:
		return "not caused by the request"
	}
	return ""
}

func (c *Client) ignore(token, why string) {
	c.stale.Add(1)
	c.cfg.Logger.Warn("reply ignored", "correlationId", token, "reason", why)
}

// transportError translates what a transport says into a call's error, once.
func transportError(err error, peer envelope.Address) *Error {
	switch {
	case errors.Is(err, transport.NoResponders):
		return newError(CodeNoResponders, err, "nobody receives requests for %s: is it running?", peer)
	case errors.Is(err, transport.Disconnected):
		return newError(CodeDisconnected, err, "the connection to the broker is down")
	case errors.Is(err, transport.Denied):
		return newError(CodeDenied, err, "the broker's permissions do not let this agent call %s", peer)
	case errors.Is(err, transport.TooLarge):
		return newError(CodePayloadTooLarge, err, "the message is larger than the transport carries")
	case errors.Is(err, transport.SlowConsumer):
		return newError(CodeBusy, err, "%s has too many requests waiting", peer)
	case errors.Is(err, transport.Closed):
		return newError(CodeAbandoned, err, "the transport is closed")
	}
	return newError(CodePublishFailed, err, "the broker did not take the request")
}
