package nats

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// deniedRetry is how often a subscription is tried again that the server's permissions
// forbid. The server says when it takes a subscription away, at a reload or after a
// reconnection, and not when it would let it be again.
const deniedRetry = 2 * time.Second

// Denied returns the topics from which nothing arrives, because the server's permissions
// have come to forbid it. It ends by itself when they allow it again.
func (c *Conn) Denied() (topics []string) {
	for _, s := range c.subscriptions() {
		if s.denied.Load() && !s.hints {
			topics = append(topics, s.topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// subscriptionDenied notes that the server forbids a subscription, and has it tried again
// if it was allowed before. It returns false if that is known.
func (c *Conn) subscriptionDenied(err error) (news bool) {
	known, lost := false, false
	for _, s := range c.subscriptions() {
		if isDenial(err, s.subject) {
			if s.denied.Swap(true) {
				known = true
			} else {
				lost = true
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if lost && !c.renewing && !c.closed {
		c.renewing = true
		c.watching.Go(c.renew)
	}
	return lost || !known
}

// isSubscription reports whether a violation of permissions is about a subscription. The
// server has no code for it, only this text.
func isSubscription(err error) bool { return strings.Contains(err.Error(), `Subscription to "`) }

// isDenial reports whether err is the server's about a subscription.
func isDenial(err error, subject string) bool {
	return strings.Contains(err.Error(), "Subscription to "+strconv.Quote(subject))
}

// denial returns what the server has to say about a subscription since before, the last
// error that was known, or nil. The server sends it before it answers the ping that
// follows the subscription, so it is there once a flush has returned.
func (c *Conn) denial(subject string, before error) error {
	err := c.nc.LastError()
	if err == nil || err == before || !errors.Is(err, natsgo.ErrPermissionViolation) || !isDenial(err, subject) { //nolint:errorlint // the very same one
		return nil
	}
	return err
}

// renew runs until no subscription is denied, or the connection ends.
func (c *Conn) renew() {
	ticker := time.NewTicker(deniedRetry)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.ended:
			return
		}
		inboxes := false
		for _, s := range c.subscriptions() {
			if s.denied.Load() && s.renew() {
				c.log.Info("the NATS server's permissions allow it again", "topic", s.topic)
				inboxes = inboxes || s.prefix != ""
			}
		}
		if inboxes {
			// The inboxes of nats.go's own requests, and of pull requests, were denied as well.
			// A new connection subscribes to them again.
			_ = c.nc.ForceReconnect() // fails only if the connection has ended
		}
		if c.allRenewed() {
			return
		}
	}
}

func (c *Conn) allRenewed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.subs {
		if s.denied.Load() {
			return false
		}
	}
	c.renewing = false
	return true
}

// renew subscribes once more in the place of a subscription that the server has taken
// away. It returns false if that is still forbidden, or there is no connection.
func (s *subscription) renew() bool {
	c := s.conn
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending || !c.connected.Load() {
		return false
	}
	before := c.nc.LastError()
	inner, err := c.nc.ChanQueueSubscribe(s.subject, s.group, s.queue)
	if err != nil {
		return false
	}
	if err = c.nc.FlushTimeout(c.roundTrip); err == nil {
		err = c.denial(s.subject, before)
	}
	if err != nil {
		_ = inner.Unsubscribe()
		return false
	}
	s.inner.SetClosedHandler(nil) // the subscription as a whole goes on
	if n, err := s.inner.Dropped(); err == nil {
		s.lost.Add(uint64(max(n, 0)))
	}
	_ = s.inner.Unsubscribe()
	s.inner = inner
	s.inner.SetClosedHandler(s.noteStopped)
	s.denied.Store(false)
	return true
}
