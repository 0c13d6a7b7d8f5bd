package nats

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/transport"
)

// Bounds of the queue for the overflow handler: few, because what waits there is late
// already, and at most as many as it answers within moments.
const (
	maxOverflow      = 1024
	maxOverflowBytes = 8 << 20
)

// watchEvery is how often a watch looks at a subscription that has messages. Until it does,
// what arrives waits in a queue that nats.go fills, which must not become full.
const watchEvery = 5 * time.Millisecond

// crowd is how many messages in that queue the watch takes for more than a handler that
// works will have emptied in a moment.
const crowd = 512

// SubscribeOverflow is Subscribe for a receiver that wants to answer even what it
// cannot take. Messages wait for h as with Subscribe, but in Options.MaxPendingBytes
// too, and those that find no room go to overflow, which is called by another
// goroutine, at the same time as h. What overflow cannot keep up with either is dropped,
// counted and logged.
//
// nats.go drops a message that finds no room without showing it to anybody. So a
// watch empties its queue before it is full, while h is stuck with a message or has too
// many: see divider.
func (c *Conn) SubscribeOverflow(topic, group string, h, overflow transport.Handler) (transport.Subscription, error) {
	if err := transport.CheckTopic("subscribe", topic); err != nil {
		return nil, err
	}
	// However little may wait, what arrives between two looks of the watch must find room.
	s := newSubscription(c, topic, max(c.maxPending, DefaultMaxPending), nil)
	d := &divider{topic: topic, log: c.log, handler: h, queue: s.queue, lost: &s.lost}
	d.main = newBacklog(nil, c.maxPending, c.maxPendingBytes, &s.discard)
	d.late = newBacklog(overflow, maxOverflow, maxOverflowBytes, &s.discard)
	d.watch = time.AfterFunc(time.Hour, d.look)
	d.watch.Stop()
	s.handler, s.resumed, s.ended = d.handle, d.resume, d.close
	d.running.Go(d.late.run)
	if err := s.start("subscribe", topic, group); err != nil {
		d.close()
		return nil, err
	}
	return s, nil
}

// A divider passes messages on to the handler, or to the one for the overflow.
//
// As long as the handler keeps up, it gets each message on the goroutine that takes it out
// of nats.go's queue: a goroutine between the two would be one more to wake for each
// message. Once the watch finds that it does not keep up, the watch takes out the messages
// instead and divides them, until the handler has had all that wait for it.
type divider struct {
	topic   string
	log     *slog.Logger
	handler transport.Handler
	queue   chan *natsgo.Msg // of the subscription
	lost    *atomic.Uint64
	running sync.WaitGroup

	turns    atomic.Uint64 // beginnings and ends of the handler: odd while it runs
	watching atomic.Bool   // the watch will look
	dividing atomic.Bool   // the watch divides; changes under mu
	watch    *time.Timer

	main, late *backlog // what the watch has divided

	mu      sync.Mutex
	closed  bool   // guarded by mu
	drained bool   // the end mark is next in queue; guarded by mu
	seen    uint64 // turns at the last look; guarded by mu
	jam            // guarded by mu
}

// A jam is a time in which main is full, or has been and is not yet empty.
type jam struct {
	since    time.Time // zero while there is none
	diverted int       // messages since then
	dropped  int       // those of them that late had no room for
}

// handle passes a message to the handler, and behind it those that the watch has taken out
// of the queue meanwhile.
func (d *divider) handle(m transport.Message) {
	d.one(m)
	d.resume()
}

// resume passes to the handler what the watch has taken out of the queue.
func (d *divider) resume() {
	for m, ok := d.next(); ok; m, ok = d.next() {
		d.one(m)
	}
}

// one passes one message to the handler.
func (d *divider) one(m transport.Message) {
	// In this order: a watch that stops looks at the turns once more.
	d.turns.Add(1)
	if !d.watching.Load() && d.watching.CompareAndSwap(false, true) {
		d.watch.Reset(watchEvery)
	}
	defer d.turns.Add(1) // also where the handler ends the goroutine
	d.handler(m)
}

// next returns the next message that the watch has left for the handler. Without one the
// handler takes its messages out of the queue again.
func (d *divider) next() (m transport.Message, ok bool) {
	if !d.dividing.Load() {
		return m, false
	}
	var over jam
	d.mu.Lock()
	if m, ok = d.main.poll(); !ok {
		d.dividing.Store(false)
		over, d.jam = d.jam, jam{}
	}
	d.mu.Unlock()
	if !over.since.IsZero() && !d.main.discard.Load() {
		d.log.Info("messages are taken again", "topic", d.topic, "refused", over.diverted-over.dropped, "dropped", over.dropped,
			"for", time.Since(over.since).Round(time.Millisecond).String())
	}
	return m, ok
}

// look is what the watch does. It ends once nothing has happened between two looks; the
// next message sets it up again.
func (d *divider) look() {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.running.Add(1) // close waits for it from here
	defer d.running.Done()
	before := d.jam
	d.lookAgain(d.observe())
	after := d.jam
	d.mu.Unlock()
	// The next look may come meanwhile: a log that nobody reads stops nothing else.
	if before.since.IsZero() && !after.since.IsZero() {
		d.log.Warn("more messages arrive than are taken: further ones are refused", "topic", d.topic)
	}
	if before.dropped == 0 && after.dropped > 0 {
		d.log.Error("messages dropped: more arrive than can be refused", "topic", d.topic)
	}
}

// observe divides what waits if the handler does not keep up. idle is set when nothing has
// happened since the last look. d.mu is held.
func (d *divider) observe() (idle bool) {
	turns := d.turns.Load()
	still := turns == d.seen
	d.seen = turns
	waiting, stuck := len(d.queue), still && turns%2 == 1
	if !d.dividing.Load() && (waiting >= crowd || waiting > 0 && stuck) {
		// In this order, so that handle and divideAll never take from the queue at the same
		// time: a handler that still runs now looks at dividing when it has ended.
		d.dividing.Store(true)
		d.dividing.Store(d.turns.Load()%2 == 1)
	}
	if !d.dividing.Load() {
		return still && !stuck && waiting == 0
	}
	d.divideAll()
	return false
}

// lookAgain sets the watch up again, unless the handler is idle. d.mu is held.
func (d *divider) lookAgain(idle bool) {
	if idle {
		d.watching.Store(false)
		// A message that came before that has not set it up.
		if d.turns.Load() == d.seen || !d.watching.CompareAndSwap(false, true) {
			return
		}
	}
	d.watch.Reset(watchEvery)
}

// divideAll takes out of the queue what is in it. It leaves the end mark, which is the last
// and for whoever handles the messages before it. d.mu is held.
func (d *divider) divideAll() {
	for !d.drained {
		select {
		case m := <-d.queue:
			if m != nil {
				d.divide(message(m))
				continue
			}
			d.drained = true
			select {
			case d.queue <- nil:
			default: // what is there ends run just as well: the subscription is being closed
			}
		default:
			return
		}
	}
}

// divide has one message wait for one of the handlers. d.mu is held.
func (d *divider) divide(m transport.Message) {
	if d.main.offer(m) {
		return
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	d.diverted++
	if !d.late.offer(m) {
		d.dropped++
		d.lost.Add(1)
	}
}

// close is called when the subscription has ended. It returns when the handler for the
// overflow has had what waits for it, or has stopped after the message at hand if the
// subscription discards it.
func (d *divider) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.watch.Stop()
	d.late.close()
	d.running.Wait()
}

// A backlog is a queue, bounded in messages and bytes, and what empties it.
type backlog struct {
	handler  transport.Handler // of run; nil for a backlog that is polled
	most     int
	mostData int
	discard  *atomic.Bool // what waits is dropped

	mu     sync.Mutex
	wake   *sync.Cond          // guarded by mu, as are all below
	queue  []transport.Message // from next on
	next   int
	bytes  int
	closed bool
}

func newBacklog(h transport.Handler, most, mostData int, discard *atomic.Bool) *backlog {
	b := &backlog{handler: h, most: most, mostData: mostData, discard: discard}
	b.wake = sync.NewCond(&b.mu)
	return b
}

// offer queues m if there is room for it. A single message has room whatever its size.
func (b *backlog) offer(m transport.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := len(b.queue) - b.next
	if waiting >= b.most || waiting > 0 && b.bytes+len(m.Data) > b.mostData {
		return false
	}
	b.queue = append(b.queue, m)
	b.bytes += len(m.Data)
	b.wake.Signal()
	return true
}

// take returns the next message. ok is false when there is none and none will come, or
// what there is has been discarded.
func (b *backlog) take() (m transport.Message, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.next == len(b.queue) && !b.closed {
		b.wake.Wait()
	}
	return b.pop()
}

// poll is take that does not wait.
func (b *backlog) poll() (m transport.Message, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pop()
}

// pop returns the first message, if there is one. b.mu is held.
func (b *backlog) pop() (m transport.Message, ok bool) {
	if b.next == len(b.queue) {
		b.queue, b.next = b.queue[:0], 0
	}
	if b.next == len(b.queue) || b.discard.Load() {
		return m, false
	}
	m, b.queue[b.next] = b.queue[b.next], transport.Message{}
	b.next++
	b.bytes -= len(m.Data)
	if b.next >= 1024 && 2*b.next >= len(b.queue) { // a queue that is never empty must not grow for ever
		n := copy(b.queue, b.queue[b.next:])
		clear(b.queue[n:])
		b.queue, b.next = b.queue[:n], 0
	}
	return m, true
}

func (b *backlog) run() {
	for {
		m, ok := b.take()
		if !ok {
			return
		}
		b.handler(m)
	}
}

// close has run return once nothing waits.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake.Signal()
}
