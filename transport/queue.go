package transport

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/envelope"
)

// QueueOverheadBytes is what a queue may add to a message: its own headers and,
// for a dead letter, the reason. A message meant for a queue must leave that
// much of [Transport] MaxMessageBytes free.
const QueueOverheadBytes = 2 << 10

// Errors of a [CallQueue].
var (
	// ErrNotStored means that nothing is stored under the key.
	ErrNotStored = errors.New("transport: not stored")
	// ErrNoQueue means that the callee has no queue, or that the broker cannot
	// keep one.
	ErrNoQueue = errors.New("transport: no queue for the agent")
	// ErrQueueFull means that the queue takes no more requests for now.
	ErrQueueFull = errors.New("transport: the queue is full")
)

// A CallKey names a queued call. The answer is stored under it.
type CallKey struct {
	Caller, Callee envelope.Address
	// CorrelationID is the call's.
	CorrelationID string
}

// A CallQueue is the caller's side of a durable queue: the broker keeps requests
// until they are answered and answers until they expire. It is safe for
// concurrent use.
type CallQueue interface {
	// Enqueue returns once the broker has stored a request for the agent to, whose
	// requests topic is topic. Within minutes the same id is stored only once. The
	// error wraps [ErrNoQueue] or [ErrQueueFull].
	Enqueue(ctx context.Context, to envelope.Address, topic, id string, request []byte) error
	// Await returns the answer to a call as soon as it exists. Once it listens for
	// answers it calls begin, if begin is not nil, and returns its error: a call
	// that begins there cannot have an answer yet and saves a look-up.
	Await(ctx context.Context, key CallKey, begin func(context.Context) error) (answer []byte, err error)
	// Note stores what the caller needs to judge the answer later, possibly in
	// another process. Noted returns it, or [ErrNotStored].
	Note(ctx context.Context, correlationID string, note []byte) error
	Noted(ctx context.Context, correlationID string) (note []byte, err error)
}

// A RequestQueue is the callee's side of a durable queue. It is safe for
// concurrent use.
type RequestQueue interface {
	// Receive calls h with each request of topic, in goroutines of its own, at most
	// atOnce at a time.
	Receive(topic string, atOnce int, h func(Delivery)) (Receiver, error)
}

// A Receiver takes requests from a queue until it is stopped.
type Receiver interface {
	// Stop takes no more requests and returns when every delivery has ended or ctx
	// is done.
	Stop(ctx context.Context) error
}

// A Delivery is one request on its way out of a queue. Exactly one of Done,
// Retry, PutBack and DeadLetter ends it; until then the queue does not deliver
// it again.
type Delivery interface {
	// Data is the request.
	Data() []byte
	// Attempt counts the attempts to serve the request, from 1.
	Attempt() int
	// Last reports whether this attempt is the last one.
	Last() bool
	// Spent reports that all attempts ended without an outcome, as when the process that
	// served them was killed each time: the request must not be tried again. Attempts that
	// the queue has counted and nobody has seen are none: where the last one has not
	// begun, it is this one.
	Spent(ctx context.Context, key CallKey) (bool, error)
	// Begin notes that the last attempt begins; for others it does nothing. It returns
	// false where the last attempt has begun elsewhere: then this delivery is void, and
	// nothing must end it.
	Begin(ctx context.Context, key CallKey) (bool, error)
	// Answered reports whether an answer is stored already.
	Answered(ctx context.Context, key CallKey) (bool, error)
	// Answer stores the answer unless there is one already: the first one counts.
	Answer(ctx context.Context, key CallKey, answer []byte) error
	// Done removes the request from the queue.
	Done(ctx context.Context) error
	// Retry has the request delivered again after a failure. The delay grows with
	// the attempts.
	Retry() error
	// PutBack has the request delivered again although nothing has failed: after a
	// delay, or at once for 0. It uses up no attempt, however often it happens.
	PutBack(ctx context.Context, after time.Duration) error
	// DeadLetter removes the request from the queue and keeps it, with at most
	// 1 KiB of the reason, for an operator.
	DeadLetter(ctx context.Context, reason string) error
}
