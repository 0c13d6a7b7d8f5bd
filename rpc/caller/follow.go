package caller

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// followed are the subscriptions to the notices of peers.
type followed struct {
	mu     sync.Mutex
	topics map[followedTopic]transport.Subscription // guarded by mu
	closed bool                                     // guarded by mu

	now atomic.Pointer[audience] // read without waiting for a subscription
}

// An audience is who hears what of whom.
type audience struct {
	hear  func(peer envelope.Address, revision string)
	peers []rpc.Peer
}

// missed tells of every peer on a transport whose connection was lost: announcements
// may have been missed meanwhile.
func (f *followed) missed(kind string) {
	a := f.now.Load()
	if a == nil {
		return
	}
	for _, p := range a.peers {
		if p.Transport == kind {
			a.hear(p.Address, "")
		}
	}
}

// A followedTopic is where one peer announces what it serves.
type followedTopic struct {
	peer             envelope.Address
	transport, topic string
}

// A HintSubscriber is a transport that has subscriptions for rare messages of which one may
// be lost. An agent may follow thousands of peers, and room for many messages of each would
// be most of its memory.
type HintSubscriber interface {
	// SubscribeHints is [transport.Transport] Subscribe without a group, but that only a few
	// messages wait for h.
	SubscribeHints(topic string, h transport.Handler) (transport.Subscription, error)
}

// maxSubscribing bounds the subscriptions that are made at the same time. Each takes a round
// trip to the broker: one after another, a thousand of them would keep an agent from its
// start for seconds where the broker is some milliseconds away.
const maxSubscribing = 64

// Follow calls hear whenever one of the peers announces that it serves another
// contract now, with the revision of its published form, and with "" when it may have
// missed that. It replaces the peers of an earlier call. Notices prove nothing: a hint
// is all that they are. hear must not block.
//
// A peer whose notices cannot be heard is part of the error; the others are followed
// all the same. Such a peer's changes are noticed when it is called.
func (c *Client) Follow(peers []rpc.Peer, hear func(peer envelope.Address, revision string)) error {
	c.followed.mu.Lock()
	defer c.followed.mu.Unlock()
	if c.followed.closed {
		return nil
	}
	c.followed.now.Store(&audience{hear, peers})
	before, now := c.followed.topics, make(map[followedTopic]transport.Subscription, len(peers))
	var missing []followedTopic
	for _, p := range peers {
		at := followedTopic{p.Address, p.Transport, wire.ChangedTopic(p.Topic)}
		if _, ok := c.transports[p.Transport]; !ok || p.Address == c.cfg.Self {
			continue
		}
		if _, ok := now[at]; ok {
			continue // it is listed twice
		}
		kept, ok := before[at]
		if now[at] = kept; !ok {
			missing = append(missing, at)
		}
		delete(before, at)
	}
	errs := []error{c.subscribeNotices(missing, now)}
	for _, s := range before {
		errs = append(errs, s.Close())
	}
	c.followed.topics = now
	return errors.Join(errs...)
}

// subscribeNotices subscribes to topics of notices, many at the same time. It puts the
// subscriptions into opened, and takes the topics out of it to which it cannot subscribe.
func (c *Client) subscribeNotices(topics []followedTopic, opened map[followedTopic]transport.Subscription) error {
	subscriptions, errs := make([]transport.Subscription, len(topics)), make([]error, len(topics))
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(maxSubscribing, len(topics)) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(topics); i = int(next.Add(1)) - 1 {
				subscriptions[i], errs[i] = c.subscribeNotice(topics[i])
			}
		})
	}
	running.Wait()
	for i, at := range topics {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("%s: %w", at.peer, errs[i])
			delete(opened, at)
			continue
		}
		opened[at] = subscriptions[i]
	}
	return errors.Join(errs...)
}

// subscribeNotice subscribes to one topic of notices.
func (c *Client) subscribeNotice(at followedTopic) (transport.Subscription, error) {
	t, hear := c.transports[at.transport], func(m transport.Message) { c.hearNotice(at, m) }
	if few, ok := t.Transport.(HintSubscriber); ok {
		return few.SubscribeHints(at.topic, hear)
	}
	return t.Subscribe(at.topic, "", hear)
}

// hearNotice takes one message of a topic of notices. A subscription outlives the call
// of Follow that made it, so it reports to the hearer of the newest one.
func (c *Client) hearNotice(at followedTopic, m transport.Message) {
	n, err := wire.ParseNotice(m.Data)
	switch {
	case err != nil:
		c.cfg.Logger.Debug("notice ignored", "topic", at.topic, "reason", err)
	case n.Agent != at.peer:
		c.cfg.Logger.Debug("notice ignored", "topic", at.topic, "reason", "of another agent")
	default:
		c.resends.askPeer(at.peer)
		c.followed.now.Load().hear(at.peer, n.Revision)
	}
}

// close ends all subscriptions.
func (f *followed) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var errs []error
	for _, s := range f.topics {
		errs = append(errs, s.Close())
	}
	f.topics = nil
	return errors.Join(errs...)
}
