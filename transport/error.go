package transport

import "fmt"

// A Code is why an operation of a transport failed. It is an error itself, so that
// callers test for it with errors.Is(err, transport.Closed).
type Code uint8

// The codes of all transports.
const (
	// Closed: the transport or subscription was closed on this side.
	Closed Code = iota + 1
	// Disconnected: there is no connection to the broker now.
	Disconnected
	// NoResponders: the topic of a request has no subscribers.
	NoResponders
	// TooLarge: the message is larger than the transport carries.
	TooLarge
	// SlowConsumer: a receiver is full, and the message was dropped.
	SlowConsumer
	// BadTopic: the topic is empty, has an empty part between dots, or contains white
	// space, control characters or wildcards.
	BadTopic
	// Denied: the broker does not permit this process to publish or subscribe there.
	Denied
	// Failed: the operation failed for another reason; see the cause.
	Failed
)

// Error returns the code in words.
func (c Code) Error() string {
	//exhaustive:enforce
	switch c {
	case Closed:
		return "transport closed"
	case Disconnected:
		return "not connected to the broker"
	case NoResponders:
		return "nobody receives on this topic"
	case TooLarge:
		return "message too large for the transport"
	case SlowConsumer:
		return "the receiver is full"
	case BadTopic:
		return "not a topic"
	case Denied:
		return "the broker's permissions forbid it"
	case Failed:
		return "the broker refused"
	}
	return fmt.Sprintf("transport code %d", uint8(c))
}

// An Error is a failed operation of a transport.
type Error struct {
	// Code is the reason; errors.Is finds it.
	Code Code
	// Op is the operation: "publish", "subscribe", "inbox", "drain".
	Op string
	// Topic is the topic of the operation, or "".
	Topic string
	// Cause is the broker client's own error, or nil.
	Cause error
}

func (e *Error) Error() string {
	s := e.Op
	if e.Topic != "" {
		s += " " + e.Topic
	}
	s += ": " + e.Code.Error()
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives errors.Is and errors.As both the code and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Cause}
}
