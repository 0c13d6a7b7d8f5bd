package otlp

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

const (
	// firstPause and maxPause bound the pauses between attempts to reach a collector.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// A Batch says how much is gathered, and for how long.
type Batch struct {
	// Queue bounds what waits; what comes then is lost. Most is a request's.
	Queue, Most int
	// Delay is how long the first of a batch waits for more.
	Delay time.Duration
}

// BatchFromEnv reads the OTEL_BSP_* and OTEL_BLRP_* variables.
func BatchFromEnv(getenv func(string) string, s Signal) Batch {
	prefix, delay := "OTEL_BSP_", 5*time.Second
	if s == Logs {
		prefix, delay = "OTEL_BLRP_", time.Second
	}
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(getenv(prefix + name))
		if err != nil || n <= 0 {
			return otherwise
		}
		return n
	}
	const most = 1 << 20 // of memory, whoever sets the variables
	b := Batch{Queue: min(number("MAX_QUEUE_SIZE", 2048), most), Most: min(number("MAX_EXPORT_BATCH_SIZE", 512), most)}
	b.Delay = time.Duration(number("SCHEDULE_DELAY", int(delay.Milliseconds()))) * time.Millisecond
	b.Most = min(b.Most, b.Queue)
	return b
}

// A State is how a queue is doing.
type State struct {
	// Away says that the collector takes nothing at present, and Cause why.
	Away  bool
	Cause string
	// Lost counts what was emitted and never arrived: while the queue was full, at the end,
	// and what the collector refused.
	Lost int64
	// Ended says that the queue is closed: it tells nothing after this.
	Ended bool
}

// Dropped counts what a queue has lost, by the reason.
type Dropped struct {
	// Full is what came while the queue was full, or the part of its account: the collector is
	// away, or slower than what is emitted.
	Full int64
	// Refused is what the collector does not take, whole requests and parts of them.
	Refused int64
	// Unsent is what was left when the queue had to end.
	Unsent int64
}

// Losses returns what says how many losses a state has to tell a person of: those since the
// last answer, at most once in an interval, and without one when the collector is back or the
// queue has ended, so that none remains untold. It is for one queue's tell, and not safe for
// concurrent use.
func Losses(interval time.Duration) func(State) int64 {
	var told int64
	var last time.Time
	var away bool
	return func(s State) int64 {
		back := away && !s.Away
		away = s.Away
		n := s.Lost - told
		if n == 0 || !back && !s.Ended && !last.IsZero() && time.Since(last) < interval {
			return 0
		}
		told, last = s.Lost, time.Now()
		return n
	}
}

// A Queue gathers what a program emits, and sends it in batches from one goroutine. Nothing
// waits for it but Close. It is safe for concurrent use.
type Queue[T any] struct {
	client *Client
	batch  Batch
	encode func([]T) ([]byte, error)
	tell   func(State)
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // has room for one: there is a whole batch, or the first of one
	ending chan struct{} // closed by Close

	account func(T) string // see Share; nil for none

	mu      sync.Mutex
	waiting []T            // guarded by mu
	held    map[string]int // how many of waiting each account has; guarded by mu
	lost    int64          // guarded by mu, as dropped is
	dropped Dropped
	closed  bool // guarded by mu
}

// NewQueue starts a queue. encode makes the message of a batch. tell is called when the
// collector has gone, when it is back, when something was lost, and at the end, from the
// goroutine of the queue.
func NewQueue[T any](client *Client, b Batch, encode func([]T) ([]byte, error), tell func(State)) *Queue[T] {
	q := &Queue[T]{client: client, batch: b, encode: encode, tell: tell, wake: make(chan struct{}, 1), ending: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	q.done.Go(q.run)
	return q
}

// shareOfFree is how much an account may have waiting, in parts of what is free: one that emits
// without an end has four fifths of the queue, two have eight ninths, and there is always room for
// the others.
const shareOfFree = 4

// Share bounds what waits for each account, by a part of what is free (the dynamic thresholds of
// Choudhury and Hahne, 1998): no account keeps the others out. It is called before the first Emit.
// There must be few accounts at a time.
func (q *Queue[T]) Share(account func(T) string) { q.account, q.held = account, map[string]int{} }

// room reports whether one more of an account may wait. The caller holds mu.
func (q *Queue[T]) room(account string) bool {
	free := q.batch.Queue - len(q.waiting)
	return free > 0 && (q.account == nil || q.held[account] < shareOfFree*free)
}

// Emit takes one. It returns at once; what finds no room is lost, and counted.
func (q *Queue[T]) Emit(one T) {
	account := ""
	if q.account != nil {
		account = q.account(one)
	}
	q.mu.Lock()
	if q.closed || !q.room(account) {
		q.lost++
		if q.closed {
			q.dropped.Unsent++
		} else {
			q.dropped.Full++
		}
		q.mu.Unlock()
		return
	}
	q.waiting = append(q.waiting, one)
	if q.account != nil {
		q.held[account]++
	}
	n := len(q.waiting)
	q.mu.Unlock()
	if n == 1 || n == q.batch.Most {
		select {
		case q.wake <- struct{}{}:
		default: // somebody has
		}
	}
}

// Dropped returns what the queue has lost so far.
func (q *Queue[T]) Dropped() Dropped {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close sends what waits, until ctx ends, and ends the goroutine.
func (q *Queue[T]) Close(ctx context.Context) {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.ending)
	}
	q.mu.Unlock()
	stop := context.AfterFunc(ctx, q.cancel)
	defer stop()
	q.done.Wait()
	q.cancel()
	q.client.Close()
}

// run sends batches until the queue is closed and empty, or has no time left.
func (q *Queue[T]) run() {
	var state State
	for {
		batch, more := q.next()
		if len(batch) > 0 {
			q.send(batch, &state)
		}
		if !more && len(batch) == 0 || q.ctx.Err() != nil {
			break
		}
	}
	q.mu.Lock()
	lost := q.lost + int64(len(q.waiting))
	q.dropped.Unsent += int64(len(q.waiting))
	q.waiting = nil
	q.mu.Unlock()
	state.Lost, state.Ended = lost, true
	q.tell(state)
}

// next waits for a batch. more is false once the queue is closed.
func (q *Queue[T]) next() (batch []T, more bool) {
	for {
		batch, n := q.take(q.batch.Most)
		if batch != nil {
			return batch, true
		}
		select {
		case <-q.ending:
			batch, _ = q.take(1)
			return batch, false
		default:
		}
		if n == 0 {
			select {
			case <-q.wake:
			case <-q.ending:
			}
			continue
		}
		timer := time.NewTimer(q.batch.Delay)
		full := q.awaitBatch(timer.C)
		timer.Stop()
		if !full {
			if batch, _ = q.take(1); batch != nil {
				return batch, true
			}
		}
	}
}

// awaitBatch waits until there is a whole batch, or late. It reports the first.
func (q *Queue[T]) awaitBatch(late <-chan time.Time) bool {
	for {
		select {
		case <-late:
			return false
		case <-q.ending:
			return false
		case <-q.wake:
			q.mu.Lock()
			full := len(q.waiting) >= q.batch.Most
			q.mu.Unlock()
			if full {
				return true
			}
		}
	}
}

// take takes a batch of at least so many, or says how many there are.
func (q *Queue[T]) take(least int) (batch []T, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.waiting)
	if n < least {
		return nil, n
	}
	n = min(n, q.batch.Most)
	batch = q.waiting[:n:n]
	if q.account != nil {
		for _, one := range batch {
			if account := q.account(one); q.held[account] > 1 {
				q.held[account]--
			} else {
				delete(q.held, account)
			}
		}
	}
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil // the batch owns the array
	}
	return batch, n
}

// maxMessage is how large a request becomes before it is sent as two: collectors take 4 MiB
// by gRPC, and refuse for good what is larger.
const maxMessage = 2 << 20

// send sends one batch, in as many requests as its size asks for.
func (q *Queue[T]) send(batch []T, state *State) {
	message, err := q.encode(batch)
	if err != nil {
		q.lose(state, &q.dropped.Refused, len(batch), "what was emitted cannot be encoded")
		return
	}
	if half := len(batch) / 2; half > 0 && len(message) > maxMessage {
		q.send(batch[:half], state)
		q.send(batch[half:], state)
		return
	}
	q.deliver(batch, message, state)
}

// deliver makes one request, again and again while the collector is away: what waits behind
// it is bounded. Once the queue is closed it tries once.
func (q *Queue[T]) deliver(batch []T, message []byte, state *State) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		refused, err := q.client.Send(q.ctx, message)
		failed, isOTLP := errors.AsType[*Error](err)
		switch {
		case err == nil:
			q.arrived(state)
			if refused != nil {
				q.lose(state, &q.dropped.Refused, int(min(refused.Count, int64(len(batch)))), "the collector refuses a part: "+refused.Reason)
			}
			return
		case !isOTLP || !failed.Retryable:
			q.away(state, err.Error())
			q.lose(state, &q.dropped.Refused, len(batch), state.Cause)
			return
		}
		q.away(state, failed.Reason)
		if !q.pause(max(failed.After, time.Duration((0.75+rand.Float64()/2)*float64(pause)))) { //nolint:gosec // spreads retries
			q.lose(state, &q.dropped.Unsent, len(batch), state.Cause)
			return
		}
	}
}

// pause waits before another attempt. It returns false once the queue is closed.
func (q *Queue[T]) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-q.ending:
		return false
	}
}

func (q *Queue[T]) away(state *State, cause string) {
	if before := state.Lost; state.Away && state.Cause == cause && q.counted(state) == before {
		return
	}
	state.Away, state.Cause = true, cause
	q.told(state)
}

// arrived notes that the collector has taken something.
func (q *Queue[T]) arrived(state *State) {
	before := state.Lost
	was := state.Away
	state.Away, state.Cause = false, ""
	if was || q.counted(state) > before {
		q.told(state)
	}
}

// lose counts what has not arrived, in all and for its reason, and says why.
func (q *Queue[T]) lose(state *State, reason *int64, n int, why string) {
	q.mu.Lock()
	q.lost += int64(n)
	*reason += int64(n)
	q.mu.Unlock()
	state.Cause = why
	q.told(state)
	if !state.Away {
		state.Cause = ""
	}
}

// counted brings the state's count of losses up to date.
func (q *Queue[T]) counted(state *State) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	state.Lost = q.lost
	return state.Lost
}

func (q *Queue[T]) told(state *State) {
	q.counted(state)
	q.tell(*state)
}
