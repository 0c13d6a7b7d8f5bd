package caller

import (
	"crypto/rand"
	"sync"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// maxSpareTopics bounds the reply topics that are kept for further calls to a peer.
// nats-server remembers the routes of 512 subjects for each connection that publishes.
const maxSpareTopics = 512

// A replyTopic is where the answer to a call goes. A call has it for itself until it ends;
// then another call may have it.
//
// A broker looks for the receivers of a subject that it sees for the first time, which
// costs it more than the rest of a message. So topics are used again, but only for the
// same peer: nobody else has learned them, and a topic is all that it takes to tell a
// caller that its peer is not there.
type replyTopic struct {
	token string // by which pendingTable finds the call
	topic string // in the reply inbox
	uri   string // the same, with the transport, for envelopes
}

// A topicUser is who answers on a topic, and by which kind of transport.
type topicUser struct {
	transport string
	peer      envelope.Address
}

// replyTopics are those that no call uses. The zero value is ready to use, and safe for
// concurrent use.
type replyTopics struct {
	mu    sync.Mutex
	spare map[topicUser][]*replyTopic // bounded by the peers that answer; guarded by mu
}

// tokenLength is that of a token in characters with five random bits each: nobody may
// guess the topics of calls to other peers.
const tokenLength = 16

// take returns a topic for a call to a peer, until it is given back.
func (t *replyTopics) take(p *rpc.Peer, on replyingTransport) *replyTopic {
	user := topicUser{p.Transport, p.Address}
	t.mu.Lock()
	if spare := t.spare[user]; len(spare) > 0 {
		last := spare[len(spare)-1] // the one that the broker has seen last
		t.spare[user] = spare[:len(spare)-1]
		t.mu.Unlock()
		return last
	}
	t.mu.Unlock()
	token := rand.Text()[:tokenLength]
	topic := on.inbox.Topic(token)
	return &replyTopic{token: token, topic: topic, uri: p.Transport + "://" + topic}
}

// give lets another call to the peer have a topic.
func (t *replyTopics) give(p *rpc.Peer, topic *replyTopic) {
	user := topicUser{p.Transport, p.Address}
	t.mu.Lock()
	defer t.mu.Unlock()
	if spare := t.spare[user]; len(spare) < maxSpareTopics {
		if t.spare == nil {
			t.spare = map[topicUser][]*replyTopic{}
		}
		t.spare[user] = append(spare, topic)
	}
}

// replyTopic returns the topic of the call, which is the same for all its attempts: a peer
// that does not say which request it answers may answer any of them.
func (c *call) replyTopic() *replyTopic {
	if c.replies == nil {
		c.replies = c.client.topics.take(&c.peer, c.transport)
	}
	return c.replies
}

// giveTopic lets another call have the topic of one that has ended, unless something may
// still arrive there that another call would take for its own: a broker's word that a
// request reached nobody does not say which request. The answer to the only request of a
// call is the last of what others say to it.
func (c *call) giveTopic() {
	if c.replies != nil && c.answered && c.requests() == 1 {
		c.client.topics.give(&c.peer, c.replies)
	}
}
