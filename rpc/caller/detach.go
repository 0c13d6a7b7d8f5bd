package caller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// Asynchronous calls to foreign peers. The reference system knows no queues: its
// agents answer an asynchronous request like any other, on the reply topic. So this
// process waits for the answer in the background and keeps it for [Client.Await].
// Nothing of that outlives the process.

const (
	// keepAnswers is how long the outcome of a detached call can be awaited.
	keepAnswers = time.Hour
	// maxKeptBytes bounds the answers that are kept. Those that were fetched already
	// make room first; if that is not enough, further calls are refused.
	maxKeptBytes = 64 << 20
	// recheckQueue is how long a foreign peer without a queue is taken to have none.
	recheckQueue = time.Minute
)

// mayDetach reports whether a call that no queue took may go straight to the callee:
// an asynchronous one, to a foreign peer of which nothing says that it keeps requests.
func (c *call) mayDetach() bool {
	return c.request.Mode == rpc.ModeAsync && c.peer.Foreign && c.capability == nil
}

// detach makes the call in the background and returns once its request is published.
func (c *call) detach(ctx context.Context) *rpc.Error { //nolint:contextcheck // the call outlives ctx
	table := c.client.detached
	kept, err := table.reserve(c.ids.correlation, c.tenant())
	if err != nil {
		return err
	}
	c.delivery = ""
	c.deadline = c.start.Add(detachedTimeout(c.request.Timeout))
	c.traceparent() // before the copy: both must belong to one trace
	background := *c
	background.attempted = 0
	published := make(chan struct{})
	background.published = published
	// The call outlives ctx, unless ctx ends before it has begun.
	running, stop := context.WithCancel(table.ctx)
	table.begin(kept, stop)
	go func() { // counted by reserve; close waits for it
		defer table.running.Done()
		defer stop()
		response, err := background.retry(running)
		table.finish(kept, background.result(response, err))
	}()
	select {
	case <-published:
	case <-kept.done:
	case <-ctx.Done():
		stop()
		return c.gaveUp(ctx)
	}
	select {
	case <-kept.done:
		// Answered at once, which is for Await to report, or not even sent.
		if err := kept.result.Error; err != nil && !background.run.replied {
			table.remove(kept)
			return err
		}
	default:
	}
	c.attempted, c.queued = 1, true
	return nil
}

// detachedTimeout is how long a detached call may take: the callee serves it like a
// synchronous one, and none of those may take longer.
func detachedTimeout(asked time.Duration) time.Duration {
	return rpc.EffectiveTimeout(asked, rpc.MaxTimeout)
}

// awaitDetached waits for the outcome of a detached call.
func (c *call) awaitDetached(ctx context.Context, d *detachedCall) (*rpc.Result, error) {
	if err := mayAwait(ctx, d.tenant); err != nil {
		return c.result(nil, err), err
	}
	select {
	case <-d.done:
	case <-ctx.Done():
		err := c.gaveUp(ctx)
		return c.result(nil, err), err
	}
	c.client.detached.noteFetched(d)
	result := *d.result
	result.Latency = time.Since(c.start)
	if result.Error != nil {
		return &result, result.Error
	}
	return &result, nil
}

// A detachedCall is one call in the background.
type detachedCall struct {
	correlation string
	tenant      string
	cancel      context.CancelFunc // ends it; nil for a moment; guarded by detachedCalls.mu
	done        chan struct{}      // closed once result is set
	result      *rpc.Result        // read only after done
	size        int                // of the answer; guarded by detachedCalls.mu
	ended       time.Time          // zero while it runs; guarded by detachedCalls.mu
	fetched     bool               // somebody got the outcome; guarded by detachedCalls.mu
}

// detachedCalls are the calls in the background and the kept outcomes of those that
// have ended. close ends the goroutines.
type detachedCalls struct {
	most    int             // calls
	ctx     context.Context // of the calls
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	calls   map[string]*detachedCall       // by correlation id; guarded by mu
	bytes   int                            // of all answers; guarded by mu
	noQueue map[envelope.Address]time.Time // foreign peers without a queue, and since when; guarded by mu
	closed  bool                           // guarded by mu
}

func newDetachedCalls(most int) *detachedCalls {
	t := &detachedCalls{most: most, calls: map[string]*detachedCall{}, noQueue: map[envelope.Address]time.Time{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// reserve makes room for one call.
func (t *detachedCalls) reserve(correlation, tenant string) (*detachedCall, *rpc.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, rpc.NewError(rpc.CodeAbandoned, nil, "this agent is shutting down")
	}
	t.makeRoom(time.Now())
	if len(t.calls) >= t.most || t.bytes >= maxKeptBytes {
		return nil, rpc.NewError(rpc.CodeBusy, nil, "%d asynchronous calls of this agent run or wait for somebody to fetch their answers (%d bytes)", len(t.calls), t.bytes)
	}
	d := &detachedCall{correlation: correlation, tenant: tenant, done: make(chan struct{})}
	t.calls[correlation] = d
	// Under the same lock as closed: close sets that before it waits.
	t.running.Add(1)
	return d, nil
}

// makeRoom drops outcomes that have been kept for long enough and, while there is no
// room, those that were fetched, the oldest first. t.mu is held.
func (t *detachedCalls) makeRoom(now time.Time) {
	var fetched []*detachedCall
	for _, d := range t.calls {
		switch {
		case d.ended.IsZero():
		case now.Sub(d.ended) >= keepAnswers:
			t.drop(d)
		case d.fetched:
			fetched = append(fetched, d)
		}
	}
	slices.SortFunc(fetched, func(a, b *detachedCall) int {
		return cmp.Or(a.ended.Compare(b.ended), cmp.Compare(a.correlation, b.correlation))
	})
	for _, d := range fetched {
		if len(t.calls) < t.most && t.bytes < maxKeptBytes {
			return
		}
		t.drop(d)
	}
}

// drop forgets a call. t.mu is held.
func (t *detachedCalls) drop(d *detachedCall) {
	if t.calls[d.correlation] == d {
		delete(t.calls, d.correlation)
		t.bytes -= d.size
	}
}

// remove forgets a call whose caller has its outcome.
func (t *detachedCalls) remove(d *detachedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(d)
}

// begin keeps what ends a call.
func (t *detachedCalls) begin(d *detachedCall, cancel context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d.cancel = cancel
}

// cancelOne ends a call that runs.
func (t *detachedCalls) cancelOne(d *detachedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

// finish keeps the outcome of a call.
func (t *detachedCalls) finish(d *detachedCall, r *rpc.Result) {
	t.mu.Lock()
	d.result, d.size, d.ended = r, len(r.Response), time.Now()
	t.bytes += d.size
	t.mu.Unlock()
	close(d.done)
}

// noteFetched notes that somebody has the outcome, which may then make room for others.
func (t *detachedCalls) noteFetched(d *detachedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d.fetched = true
}

// find returns a call, or nil.
func (t *detachedCalls) find(correlation string) *detachedCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[correlation]
}

// noteNoQueue notes that the broker keeps no requests for a foreign peer, so that
// its next calls need not wait for the broker to say so again.
func (t *detachedCalls) noteNoQueue(peer envelope.Address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noQueue[peer] = time.Now() // bounded by the peers file
}

// knowsNoQueue reports whether that was noted lately.
func (t *detachedCalls) knowsNoQueue(peer envelope.Address) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, ok := t.noQueue[peer]
	return ok && time.Since(since) < recheckQueue
}

// close cuts the running calls short and waits for them.
func (t *detachedCalls) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.running.Wait()
}
