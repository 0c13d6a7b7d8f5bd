package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/envelope"
)

// DefaultAsyncTimeout is how long an asynchronous call may wait for its answer, and
// the longest that it may.
const DefaultAsyncTimeout = 24 * time.Hour

// queueRoom is what a queue may add to a message, in bytes: its own headers, and the
// reason of a dead letter. A message that is to be kept must leave it free.
const queueRoom = 2 << 10

// A CallKey names a call that is kept: its answer is stored under it.
type CallKey struct {
	Caller, Callee envelope.Address
	// CorrelationID is the call's.
	CorrelationID string
}

// Errors of a [CallQueue].
var (
	// ErrNotKept: nothing is stored under the key.
	ErrNotKept = errors.New("rpc: not kept")
	// ErrNoQueue: the callee keeps no requests, or the broker cannot.
	ErrNoQueue = errors.New("rpc: nobody keeps requests there")
	// ErrQueueFull: there is no room for one more request.
	ErrQueueFull = errors.New("rpc: the queue is full")
)

// A CallQueue is the caller's side of a transport that keeps requests until they
// are answered, and answers until they are fetched. It is safe for concurrent use.
type CallQueue interface {
	// Enqueue returns once the broker has stored a request to an agent, whose requests
	// topic is topic. The same id again, within minutes, stores nothing. The
	// error wraps ErrNoQueue where nobody keeps requests, and ErrQueueFull.
	Enqueue(ctx context.Context, to envelope.Address, topic, id string, request []byte) error
	// Await returns the answer to a call, as soon as there is one. It calls begin, if
	// that is not nil, once it listens for answers, and returns its error: a call that
	// begins there needs not be looked for before.
	Await(ctx context.Context, key CallKey, begin func(context.Context) error) (answer []byte, err error)
	// Note keeps what the caller must know of a call to judge its answer, and
	// Noted returns it, or ErrNotKept.
	Note(ctx context.Context, correlationID string, note []byte) error
	Noted(ctx context.Context, correlationID string) (note []byte, err error)
}

// A Delivery is one request on its way from a queue. Exactly one of Done, Retry,
// PutBack and Dead ends it; until then, the queue keeps it from being delivered again.
type Delivery interface {
	// Data is the request.
	Data() []byte
	// Attempt counts how often it was delivered, from 1.
	Attempt() int
	// Last reports whether no further attempt follows a failure.
	Last() bool
	// Spent reports that all attempts have ended without a word, as when whoever
	// served them was killed each time: the request is not to be tried again.
	Spent() bool
	// Answered reports whether there is an answer already.
	Answered(ctx context.Context, key CallKey) (bool, error)
	// Answer stores the answer, unless there is one: the first one counts.
	Answer(ctx context.Context, key CallKey, answer []byte) error
	// Done takes the request off the queue.
	Done(ctx context.Context) error
	// Retry has it delivered again after a failure, and a time that grows with the
	// attempts.
	Retry() error
	// PutBack has it delivered again although nothing has failed: after a time, or
	// at once for 0. However often, it does not use up the attempts.
	PutBack(ctx context.Context, after time.Duration) error
	// Dead takes it off the queue and keeps it with the reason, of which 1 KiB at most,
	// for a person.
	Dead(ctx context.Context, reason string) error
}

// A RequestQueue is the callee's side. It is safe for concurrent use.
type RequestQueue interface {
	// Receive calls h with each request of topic, in goroutines of its own, at most
	// atOnce at a time.
	Receive(topic string, atOnce int, h func(Delivery)) (Receiver, error)
}

// A Receiver takes requests from a queue until it is stopped.
type Receiver interface {
	// Stop takes no more, and returns when every delivery has ended or ctx has.
	Stop(ctx context.Context) error
}
