package rpctest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A Queue keeps durable calls in memory, in place of a broker. It is both a
// [transport.CallQueue] and a [transport.RequestQueue], for one topic.
type Queue struct {
	// Fail is asked before each operation, by its method's name: an error fails the
	// operation. Nil fails none. Set it before the queue is used.
	Fail func(operation string) error
	// Elsewhere says that last attempts have begun elsewhere when Begin is asked.
	Elsewhere atomic.Bool

	mu       sync.Mutex
	serve    func(transport.Delivery)     // guarded by mu
	backlog  []*delivery                  // enqueued before anybody received; guarded by mu
	answers  map[transport.CallKey][]byte // guarded by mu
	answered chan struct{}                // closed, and replaced, at each answer; guarded by mu
	notes    map[string][]byte            // guarded by mu
	ends     []string                     // guarded by mu
	ids      []string                     // guarded by mu
	requests [][]byte                     // guarded by mu
	running  sync.WaitGroup
}

// MaxAttempts is how often a [Queue] delivers a request that fails.
const MaxAttempts = 3

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{answers: map[transport.CallKey][]byte{}, answered: make(chan struct{}), notes: map[string][]byte{}}
}

// Durable are keys for [ContractWith] that make a capability durable.
const Durable = "    timeoutMs: 5000\n    delivery: durable\n"

// NewDurableWorld is [NewWorld] with review-pr durable and q between the two ends.
func NewDurableWorld(t testing.TB, h rpc.Handler, q *Queue, options ...Option) *World {
	t.Helper()
	both := []Option{Both(ContractWith(t, Durable), &Refusals{}), func(cc *caller.Config, _ *callee.Config) {
		cc.Queues = map[string]transport.CallQueue{memory.Kind: q}
	}}
	w := NewWorld(t, h, append(both, options...)...)
	if err := w.Inbox.ListenDurable(w.CalleeConn, q, Topic); err != nil {
		t.Fatal(err)
	}
	return w
}

// fail returns the error that the test has set for an operation, or nil.
func (q *Queue) fail(operation string) error {
	if q.Fail == nil {
		return nil
	}
	return q.Fail(operation)
}

// Enqueue implements [transport.CallQueue].
func (q *Queue) Enqueue(_ context.Context, to envelope.Address, topic, id string, request []byte) error {
	if err := q.fail("Enqueue"); err != nil {
		return err
	}
	if to != Reviewer || topic != Topic {
		return fmt.Errorf("%w: %s at %s", transport.ErrNoQueue, to, topic)
	}
	q.mu.Lock()
	q.ids, q.requests = append(q.ids, id), append(q.requests, request)
	q.mu.Unlock()
	q.Deliver(request, 1)
	return nil
}

// Deliver delivers a request as if it had been enqueued and served attempt-1 times.
func (q *Queue) Deliver(request []byte, attempt int) {
	d := &delivery{queue: q, data: request, attempt: attempt}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.serve == nil {
		q.backlog = append(q.backlog, d)
		return
	}
	q.run(d)
}

// run serves d in a goroutine of its own. q.mu is held.
func (q *Queue) run(d *delivery) {
	serve := q.serve
	q.running.Go(func() { serve(d) })
}

// Await implements [transport.CallQueue].
func (q *Queue) Await(ctx context.Context, key transport.CallKey, begin func(context.Context) error) ([]byte, error) {
	if begin != nil {
		if err := begin(ctx); err != nil {
			return nil, err
		}
	}
	if err := q.fail("Await"); err != nil {
		return nil, err
	}
	for {
		q.mu.Lock()
		// Both under one lock: an answer stored after this closes more.
		answer, more := q.answers[key], q.answered
		q.mu.Unlock()
		if answer != nil {
			return answer, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Store stores an answer unless there is one already.
func (q *Queue) Store(key transport.CallKey, answer []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answers[key] == nil {
		q.answers[key] = answer
		close(q.answered)
		q.answered = make(chan struct{})
	}
}

// Note implements [transport.CallQueue].
func (q *Queue) Note(_ context.Context, correlationID string, note []byte) error {
	if err := q.fail("Note"); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notes[correlationID] = note
	return nil
}

// Noted implements [transport.CallQueue].
func (q *Queue) Noted(_ context.Context, correlationID string) ([]byte, error) {
	if err := q.fail("Noted"); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	note := q.notes[correlationID]
	if note == nil {
		return nil, transport.ErrNotStored
	}
	return note, nil
}

// Receive implements [transport.RequestQueue].
func (q *Queue) Receive(_ string, _ int, h func(transport.Delivery)) (transport.Receiver, error) {
	if err := q.fail("Receive"); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serve = h
	for _, d := range q.backlog {
		q.run(d)
	}
	q.backlog = nil
	return receiver{q}, nil
}

// Requests are the ids and the messages that were enqueued.
func (q *Queue) Requests(t testing.TB) (ids []string, requests []*envelope.Envelope) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, data := range q.requests {
		e, err := envelope.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, e)
	}
	return q.ids, requests
}

// Ends are how deliveries have ended, in order: "done", "retry 1" after the first
// attempt, "put back for 1s" and "dead: " with the reason.
func (q *Queue) Ends() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]string(nil), q.ends...)
}

// Answer decodes the answer to the call of request, or returns nil.
func (q *Queue) Answer(t testing.TB, request *envelope.Envelope) *envelope.Envelope {
	t.Helper()
	q.mu.Lock()
	data := q.answers[KeyOf(request)]
	q.mu.Unlock()
	if data == nil {
		return nil
	}
	e, err := envelope.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// KeyOf names the call of a request.
func KeyOf(request *envelope.Envelope) transport.CallKey {
	return transport.CallKey{Caller: request.From, Callee: request.To, CorrelationID: request.CorrelationID}
}

type receiver struct{ queue *Queue }

// Stop keeps later deliveries in the queue.
func (r receiver) Stop(context.Context) error {
	r.queue.mu.Lock()
	r.queue.serve = nil
	r.queue.mu.Unlock()
	r.queue.running.Wait()
	return r.queue.fail("Stop")
}

// A delivery is one request out of a [Queue].
type delivery struct {
	queue   *Queue
	data    []byte
	attempt int
}

func (d *delivery) Data() []byte { return d.data }
func (d *delivery) Attempt() int { return d.attempt }
func (d *delivery) Last() bool   { return d.attempt >= MaxAttempts }

func (d *delivery) Spent(context.Context, transport.CallKey) (bool, error) {
	return d.attempt > MaxAttempts, d.queue.fail("Spent")
}

func (d *delivery) Begin(context.Context, transport.CallKey) (bool, error) {
	return !d.Last() || !d.queue.Elsewhere.Load(), d.queue.fail("Begin")
}

func (d *delivery) Answered(_ context.Context, key transport.CallKey) (bool, error) {
	if err := d.queue.fail("Answered"); err != nil {
		return false, err
	}
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.queue.answers[key] != nil, nil
}

func (d *delivery) Answer(ctx context.Context, key transport.CallKey, answer []byte) error {
	if err := d.queue.fail("Answer"); err != nil {
		return err
	}
	d.queue.Store(key, answer)
	return ctx.Err()
}

func (d *delivery) Done(ctx context.Context) error { return d.end(ctx, "Done", "done") }

func (d *delivery) DeadLetter(ctx context.Context, reason string) error {
	return d.end(ctx, "DeadLetter", "dead: "+reason)
}

// Retry delivers the request again after a second for each attempt.
func (d *delivery) Retry() error {
	defer time.AfterFunc(time.Duration(d.attempt)*time.Second, func() { d.queue.Deliver(d.data, d.attempt+1) })
	return d.end(context.Background(), "Retry", fmt.Sprint("retry ", d.attempt))
}

func (d *delivery) PutBack(ctx context.Context, after time.Duration) error {
	defer time.AfterFunc(after, func() { d.queue.Deliver(d.data, d.attempt) })
	return d.end(ctx, "PutBack", fmt.Sprint("put back for ", after))
}

// end notes how a delivery ended, in the form that [Queue.Ends] returns.
func (d *delivery) end(ctx context.Context, operation, how string) error {
	if err := d.queue.fail(operation); err != nil {
		return err
	}
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	d.queue.ends = append(d.queue.ends, how)
	return ctx.Err()
}
