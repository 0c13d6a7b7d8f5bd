package callee

import (
	"runtime"
	"sync"
	"time"
)

// maxIdleWorkers bounds the goroutines that wait for requests. More would keep
// memory that a burst needed once.
const maxIdleWorkers = 256

// retireAfter is for how long a worker waits at least before it ends because so many were
// never needed meanwhile.
const retireAfter = 10 * time.Second

// stackRoom makes a worker's own frame larger than a quarter of 16 KB. The garbage
// collector halves the stack of a waiting goroutine that uses less of it than that,
// and the next request would have to grow it again.
const stackRoom = 4500

// workers run requests in reused goroutines, which keep the stacks that they have
// grown.
//
// No request waits for another one to end: before a worker serves a request it calls
// another worker for the next one. While requests do not block, one worker serves a
// whole batch before the other arrives, and the transport writes the replies of the
// batch at once.
type workers struct {
	mu          sync.Mutex
	first, last *call // the queue, linked by next; guarded by mu
	idle        int   // workers that wait for called; guarded by mu
	spare       int   // the fewest of them since the last look; guarded by mu
	leaving     int   // workers that were woken to end; guarded by mu
	coming      bool  // a worker is on its way to the queue; guarded by mu
	closed      bool  // guarded by mu

	called  *sync.Cond  // wakes one idle worker
	look    *time.Timer // retires spare workers; nil while there are none; guarded by mu
	running sync.WaitGroup
}

func newWorkers() *workers {
	w := &workers{}
	w.called = sync.NewCond(&w.mu)
	return w
}

// start serves call in a goroutine other than the caller's.
func (w *workers) start(call *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		w.first = call
	} else {
		w.last.next = call
	}
	w.last = call
	w.callOne()
}

// callOne wakes or starts a worker, unless one is coming already or nothing is
// queued. w.mu is held.
func (w *workers) callOne() {
	if w.coming || w.first == nil {
		return
	}
	w.coming = true
	if w.idle == 0 {
		w.running.Go(w.work)
		return
	}
	w.idle--
	w.spare = min(w.spare, w.idle)
	w.called.Signal()
}

// work serves requests until enough other workers are idle.
func (w *workers) work() {
	var room [stackRoom]byte
	defer runtime.KeepAlive(&room)
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.coming = false; ; {
		if call := w.take(); call != nil {
			w.serve(call)
			continue
		}
		if w.closed || w.idle == maxIdleWorkers {
			return
		}
		if w.look == nil && w.idle > 0 {
			w.spare, w.look = 0, time.AfterFunc(retireAfter, w.retire)
		}
		w.idle++
		w.called.Wait()
		if w.leaving > 0 {
			w.leaving--
			return
		}
		w.coming = false
	}
}

// retire ends the workers that have not been needed since it last looked, but for one. While
// requests come, those that serve them stay.
func (w *workers) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look = nil
	if w.closed {
		return
	}
	// Who is woken here and who is woken for a request may take each other's place: as many
	// end as should.
	leave := min(w.spare, w.idle-1)
	for range leave {
		w.called.Signal()
	}
	w.leaving, w.idle = w.leaving+max(leave, 0), w.idle-max(leave, 0)
	if w.spare = w.idle; w.idle > 1 {
		w.look = time.AfterFunc(retireAfter, w.retire)
	}
}

// serve serves a request without w.mu, and holds it again afterwards even if the
// handler ends the goroutine: work's own defer unlocks it.
func (w *workers) serve(call *call) {
	w.mu.Unlock()
	defer w.mu.Lock()
	call.serve()
}

// take takes a request off the queue and calls a worker for the next one. w.mu is
// held.
func (w *workers) take() *call {
	call := w.first
	if call == nil {
		return nil
	}
	w.first, call.next = call.next, nil
	w.callOne()
	return call
}

// stop ends the workers and waits for them. It must be called after the last
// request has ended.
func (w *workers) stop() {
	w.mu.Lock()
	w.closed, w.idle = true, 0
	if w.look != nil {
		w.look.Stop()
	}
	w.called.Broadcast()
	w.mu.Unlock()
	w.running.Wait()
}
