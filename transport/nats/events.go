package nats

import (
	"errors"
	"os"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/transport"
)

// The callbacks of nats.go. It makes them one after another, from a goroutine of its
// own that ends with the connection: a callback must not block on a handler.

// disconnected is called when the connection breaks. By then every message that
// arrived is in its subscription's queue, so the notice comes behind all replies.
func (c *Conn) disconnected(nc *natsgo.Conn, err error) {
	c.connected.Store(false)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	again := c.again
	c.watching.Go(func() { c.watchLoss(nc, again) })
	c.mu.Unlock()
	c.log.Warn("connection to NATS lost", "error", err)
	c.notify("", transport.Disconnected)
}

// reconnected is called with every new connection. It may be to a server with
// another limit.
func (c *Conn) reconnected(nc *natsgo.Conn) {
	c.maxPayload.Store(nc.MaxPayload())
	c.connected.Store(true)
	c.reconnects.Add(1)
	c.log.Info("connected to NATS again", "server", nc.ConnectedUrlRedacted())
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.again)
	c.again = make(chan struct{})
}

// NextReconnect implements [transport.Reconnecter].
func (c *Conn) NextReconnect() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.again
}

// closedHandler is the last callback.
func (c *Conn) closedHandler(nc *natsgo.Conn) {
	if !c.isClosed() {
		c.log.Error("NATS connection ended for good", "error", nc.LastError())
		c.notify("", transport.Disconnected)
	}
	close(c.ended)
}

// asyncError is called with errors that belong to no call of ours: those that the
// server sends later, and those of full queues.
func (c *Conn) asyncError(nc *natsgo.Conn, sub *natsgo.Subscription, err error) {
	switch {
	case errors.Is(err, natsgo.ErrSlowConsumer):
		dropped, _ := sub.Dropped()
		c.log.Error("messages dropped: the subscription's queue is full", "topic", sub.Subject, "dropped", dropped)
	case errors.Is(err, natsgo.ErrPermissionViolation) && isProbe(deniedTopic(err)):
		if !c.probeDenied.Swap(true) {
			c.log.Warn("the NATS server's permissions forbid checking whether callers are still connected: "+
				"skills whose caller has died run to their deadline", "error", err)
		}
	case errors.Is(err, natsgo.ErrPermissionViolation) && isSubscription(err):
		if c.subscriptionDenied(err) {
			c.log.Error("the NATS server's permissions forbid it", "error", err)
		}
	case errors.Is(err, natsgo.ErrPermissionViolation):
		c.log.Error("the NATS server's permissions forbid it", "error", err)
		if topic := deniedTopic(err); topic != "" {
			c.notify(topic, transport.Denied)
		}
	case !c.connected.Load() && failedTLS(err):
		// Each attempt to reconnect fails with it, and watchLoss says so once.
	case errors.Is(err, os.ErrDeadlineExceeded):
		// nats.go has dropped the bytes that it could not write. The stream is torn in
		// the middle of a message, so only a new connection helps.
		c.log.Error("the NATS server accepts no bytes", "error", err)
		_ = nc.ForceReconnect()
	default:
		c.log.Error("NATS error", "error", err)
	}
}

// notify puts a notice into every inbox, behind the messages that arrived before.
func (c *Conn) notify(topic string, code transport.Code) {
	for _, s := range c.subscriptions() {
		if s.prefix != "" {
			s.push(notice(topic, code))
		}
	}
}

// deniedTopic returns the subject that the server's permissions forbid to publish to,
// or "". The server has no code for it, only this text.
func deniedTopic(err error) string {
	_, rest, ok := strings.Cut(err.Error(), `Publish to "`)
	if !ok {
		return ""
	}
	topic, _, _ := strings.Cut(rest, `"`)
	return topic
}
