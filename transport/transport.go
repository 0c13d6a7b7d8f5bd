package transport

import "context"

// A Message is what a topic carries.
type Message struct {
	// Topic is where the message was published.
	Topic string
	// Reply is the topic that an answer goes to, or "".
	Reply string
	// Data belongs to the transport once published, and is shared by all
	// who receive it: nobody may change it.
	Data []byte
	// Err is set only on messages that the transport itself makes, and is then
	// the [Code] of what happened to a request ([NoResponders]) or to many (the
	// notices of [Transport] OpenInbox); Data is nil.
	Err error
}

// A Handler takes the messages of one subscription, one after another. It must
// not block for long, and must not close the subscription that calls it.
type Handler func(Message)

// A Transport carries messages between agents. All methods are safe for
// concurrent use. Errors are [*Error].
type Transport interface {
	// Kind is the scheme of this transport's addresses: "memory", "nats".
	Kind() string

	// Publish hands m to the broker. It returns once the broker's client has
	// taken the message, which says nothing about who receives it.
	// Codes: Closed, Disconnected, TooLarge, SlowConsumer, BadTopic.
	Publish(ctx context.Context, m Message) error

	// Subscribe calls h with every message of topic. Subscriptions with the same
	// non-empty group share the topic's messages between them.
	// The broker knows of the subscription when Subscribe returns.
	// Codes: Closed, Disconnected, BadTopic, Denied.
	Subscribe(topic, group string, h Handler) (Subscription, error)

	// OpenInbox makes a private set of reply topics, whose messages all go to h.
	// Besides messages h gets notices, whose Err is set and whose Topic is none
	// of the inbox's: they end the wait for replies that will not come.
	// Disconnected, with Topic "", says that the connection broke: a request
	// published before, or its reply, may be lost. Denied says that the broker
	// refused a message on Topic. A notice comes after the replies that arrived
	// before its cause.
	// Codes: Closed, Disconnected, Denied.
	OpenInbox(h Handler) (Inbox, error)

	// MaxMessageBytes is the largest Data that Publish takes.
	MaxMessageBytes() int

	// Drain stops taking messages in, lets the handlers finish what has
	// arrived, and closes. When ctx ends first the rest is dropped, and
	// the error wraps ctx's; a running handler is waited for all the same.
	// Draining twice is harmless.
	Drain(ctx context.Context) error

	// Close stops at once: messages that no handler has begun are dropped.
	// It waits for running handlers. Closing twice is harmless.
	Close() error
}

// A Subscription is one receiver of a topic.
type Subscription interface {
	// Dropped counts the messages that came while the subscription was full.
	Dropped() uint64
	// Drain takes no more messages in, lets the handler finish what has arrived,
	// and closes. When ctx ends first the rest is dropped, and the
	// error wraps ctx's; a running handler is waited for all the same.
	Drain(ctx context.Context) error
	// Close stops the subscription and waits for a running handler.
	Close() error
}

// An Inbox is a private set of reply topics.
type Inbox interface {
	Subscription
	// Topic is the reply topic for token, a non-empty string without dots.
	// Two tokens never share a topic; no other inbox of any process has it.
	Topic(token string) string
	// Token is the token that topic was made with; ok is false for a topic
	// that is not this inbox's.
	Token(topic string) (token string, ok bool)
}
