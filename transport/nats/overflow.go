package nats

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/transport"
)

// Bounds of the queue for the overflow handler: few, because what waits there is late
// already, and at most as many as it answers within moments.
const (
	maxOverflow      = 1024
	maxOverflowBytes = 8 << 20
)

// SubscribeOverflow is Subscribe for a receiver that wants to answer even what it
// cannot take. Messages wait for h as with Subscribe, but in Options.MaxPendingBytes
// too, and those that find no room go to overflow, which is called by another
// goroutine, at the same time as h. What overflow cannot keep up with either is dropped,
// counted and logged.
//
// nats.go drops a message that finds no room without showing it to anybody. So a
// goroutine that does nothing else empties its queue here before it is full.
func (c *Conn) SubscribeOverflow(topic, group string, h, overflow transport.Handler) (transport.Subscription, error) {
	if err := transport.CheckTopic("subscribe", topic); err != nil {
		return nil, err
	}
	// However little may wait, what arrives at once must find room until it is divided.
	s := newSubscription(c, topic, max(c.maxPending, DefaultMaxPending), nil)
	d := &divider{topic: topic, log: c.log, lost: &s.lost}
	d.main = newBacklog(h, c.maxPending, c.maxPendingBytes, &s.discard)
	d.late = newBacklog(overflow, maxOverflow, maxOverflowBytes, &s.discard)
	d.main.emptied = d.ended
	s.handler, s.ended = d.divide, d.close
	d.running.Go(d.main.run)
	d.running.Go(d.late.run)
	if err := s.start("subscribe", topic, group); err != nil {
		d.close()
		return nil, err
	}
	return s, nil
}

// A divider passes messages on to the handler, or to the one for the overflow.
type divider struct {
	topic      string
	log        *slog.Logger
	main, late *backlog
	lost       *atomic.Uint64
	running    sync.WaitGroup

	mu       sync.Mutex
	since    time.Time // when main became full; zero when it is not; guarded by mu
	diverted int       // messages since then; guarded by mu
	dropped  int       // those of them that late had no room for; guarded by mu
}

func (d *divider) divide(m transport.Message) {
	if d.main.offer(m) {
		return
	}
	taken := d.late.offer(m)
	d.mu.Lock()
	first, firstLoss := d.since.IsZero(), !taken && d.dropped == 0
	if first {
		d.since = time.Now()
	}
	d.diverted++
	if !taken {
		d.dropped++
		d.lost.Add(1)
	}
	d.mu.Unlock()
	if first {
		d.log.Warn("more messages arrive than are taken: further ones are refused", "topic", d.topic)
	}
	if firstLoss {
		d.log.Error("messages dropped: more arrive than can be refused", "topic", d.topic)
	}
}

// ended is called when everything that waited has been handled.
func (d *divider) ended() {
	d.mu.Lock()
	since, diverted, dropped := d.since, d.diverted, d.dropped
	d.since, d.diverted, d.dropped = time.Time{}, 0, 0
	d.mu.Unlock()
	if !since.IsZero() {
		d.log.Info("messages are taken again", "topic", d.topic, "refused", diverted-dropped, "dropped", dropped,
			"for", time.Since(since).Round(time.Millisecond).String())
	}
}

// close returns when the handlers have had what waits for them, or have stopped after
// the message at hand if the subscription discards it.
func (d *divider) close() {
	d.main.close()
	d.late.close()
	d.running.Wait()
}

// A backlog is a queue, bounded in messages and bytes, and what empties it.
type backlog struct {
	handler  transport.Handler
	most     int
	mostData int
	discard  *atomic.Bool // what waits is dropped
	emptied  func()       // called when nothing waits any more; nil for none

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
		if b.next > 0 {
			b.queue, b.next = b.queue[:0], 0
		}
		b.wake.Wait()
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

func (b *backlog) isEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next == len(b.queue)
}

func (b *backlog) run() {
	for {
		m, ok := b.take()
		if !ok {
			return
		}
		b.handler(m)
		if b.emptied != nil && b.isEmpty() {
			b.emptied()
		}
	}
}

// close has run return once nothing waits.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake.Signal()
}
