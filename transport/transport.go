package transport

import (
	"context"

	"github.com/agentd/agentd/envelope"
)

// A Message is published on a topic.
type Message struct {
	// Topic is where the message was published.
	Topic string
	// Reply is the topic for an answer, or "".
	Reply string
	// Data is shared by all receivers and must not be changed after Publish, but where
	// the transport is a [Copier] that copies it. Others do not, so that the cost of a
	// message does not depend on its size or on the number of receivers.
	Data []byte
	// Err is set only on messages from the transport itself. It is the [Code] of what
	// happened to one request ([NoResponders]) or to many (the notices of
	// [Transport] OpenInbox). Data is nil then.
	Err error
}

// A Handler receives the messages of one subscription, one after another. It must
// not block for long, since messages queue up behind it, and must not close the
// subscription that calls it, since Close waits for the handler. One that ends its
// goroutine, as runtime.Goexit does, gets the later messages on another.
type Handler func(Message)

// A Transport carries messages between agents. All methods are safe for
// concurrent use. Errors are [*Error].
type Transport interface {
	// Kind is the scheme of this transport's addresses: "memory", "nats".
	Kind() string

	// Publish passes m to the broker. It returns once the broker's client has
	// accepted the message, whether or not anybody receives it.
	// Codes: Closed, Disconnected, TooLarge, SlowConsumer, BadTopic.
	Publish(ctx context.Context, m Message) error

	// Subscribe calls h with every message on topic. Subscriptions with the same
	// non-empty group share the messages between them. When Subscribe returns, the
	// broker has registered the subscription: no later message is missed.
	// Codes: Closed, Disconnected, BadTopic, Denied.
	Subscribe(topic, group string, h Handler) (Subscription, error)

	// OpenInbox opens a private set of reply topics, whose messages all go to h. h
	// also receives notices, with Err set and a Topic outside of the inbox. They end
	// the wait for replies that will not come: Disconnected, with Topic "", when the
	// connection was lost, and with it perhaps a request or its reply; Denied when
	// the broker rejected a message on Topic. A notice follows the replies that
	// arrived before its cause.
	// Codes: Closed, Disconnected, Denied.
	OpenInbox(h Handler) (Inbox, error)

	// OwnsReply reports whether a reply topic belongs to an agent, by the form of the
	// transport's reply topics. A message names its own reply topic, and whoever
	// answers publishes there with rights that the sender may lack: only the sender's
	// own topics may be answered.
	OwnsReply(agent envelope.Address, topic string) bool

	// MaxMessageBytes is the largest Data that Publish accepts.
	MaxMessageBytes() int

	// Drain stops receiving, lets the handlers finish the messages that have arrived,
	// and closes. If ctx ends first, the remaining messages are dropped and the error
	// wraps that of ctx; running handlers are waited for in any case. Draining twice
	// is harmless.
	Drain(ctx context.Context) error

	// Close stops immediately. It drops the messages that no handler has begun, and
	// waits for running handlers. Closing twice is harmless.
	Close() error
}

// A Copier is a [Transport] that tells whether Publish keeps the Data of messages. Where
// it does not, publishers may use that memory again once Publish has returned.
type Copier interface {
	// CopiesData is the same for the whole life of the transport.
	CopiesData() bool
}

// A Reconnecter is a [Transport] that tells when it has a connection again after a loss.
type Reconnecter interface {
	// NextReconnect returns a channel that is closed when the connection is made again the
	// next time, once messages can be published and topics are subscribed to anew.
	NextReconnect() <-chan struct{}
}

// A Subscription is one receiver of a topic.
type Subscription interface {
	// Dropped returns how many messages arrived while the subscription was full.
	Dropped() uint64
	// Drain stops receiving, lets the handler finish the messages that have arrived,
	// and closes. If ctx ends first, the remaining messages are dropped and the error
	// wraps that of ctx; a running handler is waited for in any case.
	Drain(ctx context.Context) error
	// Close stops the subscription and waits for a running handler.
	Close() error
}

// An Inbox is a private set of reply topics.
type Inbox interface {
	Subscription
	// Topic returns the reply topic for token, a non-empty string without dots. It is
	// different for each token, and no other inbox of any process has it.
	Topic(token string) string
	// Token returns the token of a topic; ok is false for a topic that is not from
	// this inbox.
	Token(topic string) (token string, ok bool)
}
