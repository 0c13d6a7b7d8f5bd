package caller

import (
	"context"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

const (
	// maxCancelled bounds the cancellations that are sent again, of all peers together.
	maxCancelled = 1024
	// A cancellation is sent again at once when its callee is first heard of, and then no
	// sooner than after a pause that doubles each time. Notices prove nothing: whoever may
	// publish one could otherwise have this agent send all cancellations for each.
	firstResendPause   = time.Second
	longestResendPause = 16 * time.Second
)

// resends are the cancellations whose callees may not have heard of them. A goroutine sends
// them, which runs while there are any.
type resends struct {
	wake chan struct{} // one token: something has changed
	stop context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	calls   map[*call]*resend // guarded by mu
	running bool              // guarded by mu
	closed  bool              // guarded by mu
	sending sync.WaitGroup
}

// A resend says when a cancellation may be sent again.
type resend struct {
	until time.Time     // the end of the call's deadline
	asked bool          // the callee was heard of since the last time
	next  time.Time     // not before
	pause time.Duration // the last one
}

func newResends() *resends {
	r := &resends{wake: make(chan struct{}, 1), calls: map[*call]*resend{}}
	r.stop, r.end = context.WithCancel(context.Background())
	return r
}

// add keeps a cancellation until the deadline of its call. What is too much is not sent again.
func (r *resends) add(one *call, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.calls) >= maxCancelled {
		return
	}
	r.calls[one] = &resend{until: until}
	if !r.running {
		r.running = true
		r.sending.Go(func() { r.run(one.client.transports) })
	}
}

// ask has some of the cancellations sent again, as soon as they may be.
func (r *resends) ask(which func(*call) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one, again := range r.calls {
		again.asked = again.asked || which(one)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// askPeer is ask for the calls to a peer that was heard of: it may have been away when they
// were given up.
func (r *resends) askPeer(peer envelope.Address) {
	r.ask(func(one *call) bool { return one.peer.Address == peer })
}

// close sends no more cancellations, and returns when none is being sent.
func (r *resends) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end()
	r.sending.Wait()
}

// run sends cancellations while there are any. When a transport has its connection back, the
// notices of peers may have been lost with it: then it asks for all.
func (r *resends) run(transports map[string]replyingTransport) {
	ctx, cancel := context.WithCancel(r.stop)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	for kind, t := range transports {
		if connection, ok := t.Transport.(transport.Reconnecter); ok {
			again := connection.NextReconnect()
			watching.Go(func() { r.watch(ctx, kind, connection, again) })
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, wait := r.take(time.Now())
		for _, one := range due {
			one.cancelCallee(ctx)
		}
		if wait < 0 {
			return
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
			return
		}
	}
}

// watch asks for the calls by a transport whenever that has its connection back.
func (r *resends) watch(ctx context.Context, kind string, connection transport.Reconnecter, again <-chan struct{}) {
	for {
		select {
		case <-again:
			again = connection.NextReconnect()
			r.ask(func(one *call) bool { return one.peer.Transport == kind })
		case <-ctx.Done():
			return
		}
	}
}

// take returns the cancellations that are to be sent now, and how long it is until it may
// have others. It is negative when no cancellation is left: then run ends.
func (r *resends) take(now time.Time) (due []*call, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = -1
	for one, again := range r.calls {
		if !now.Before(again.until) {
			delete(r.calls, one)
			continue
		}
		at := again.until
		switch {
		case again.asked && !now.Before(again.next):
			again.asked = false
			again.pause = min(max(2*again.pause, firstResendPause), longestResendPause)
			again.next = now.Add(again.pause)
			due = append(due, one)
		case again.asked && again.next.Before(at):
			at = again.next
		}
		if left := at.Sub(now); wait < 0 || left < wait {
			wait = left
		}
	}
	r.running = wait >= 0
	return due, wait
}
