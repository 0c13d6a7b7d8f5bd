package rpc

import (
	"runtime"
	"sync"
)

// maxIdleWorkers bounds the goroutines that wait for requests.
const maxIdleWorkers = 256

// stackRoom makes a worker's own frame more than a quarter of 16 KB. The garbage
// collector halves a stack of which a waiting goroutine uses less, and the next
// request would have to grow it again.
const stackRoom = 4500

// workers run requests in goroutines that are used again: they keep the stack
// that they have grown.
//
// No request waits for another one to end: whoever takes one off the queue first
// gets another worker to come for the next. As long as requests do not block,
// one worker serves a whole batch before that other one arrives, and the
// transport writes their replies at once.
type workers struct {
	mu          sync.Mutex
	first, last *inboundCall // the queue, linked by next; guarded by mu
	idle        int          // how many wait for called; guarded by mu
	coming      bool         // a worker is on its way to the queue; guarded by mu
	closed      bool         // guarded by mu

	called  *sync.Cond // for one that is idle
	running sync.WaitGroup
}

func newWorkers() *workers {
	w := &workers{}
	w.called = sync.NewCond(&w.mu)
	return w
}

// start serves call in a goroutine other than the caller's.
func (w *workers) start(call *inboundCall) {
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

// callOne gets a worker to come, unless one is coming or nothing is queued. w.mu is held.
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
	w.called.Signal()
}

// work serves requests until there are enough idle workers without this one.
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
		w.idle++
		w.called.Wait()
		w.coming = false
	}
}

// serve serves a request without w.mu, which is held again even where the
// handler ends its goroutine.
func (w *workers) serve(call *inboundCall) {
	w.mu.Unlock()
	defer w.mu.Lock()
	call.serveCounted()
}

// take takes a request off the queue, and sees to it that the next one is taken
// too. w.mu is held.
func (w *workers) take() *inboundCall {
	call := w.first
	if call == nil {
		return nil
	}
	w.first, call.next = call.next, nil
	w.callOne()
	return call
}

// stop ends the workers, and waits for them. No request may run or be started
// any more.
func (w *workers) stop() {
	w.mu.Lock()
	w.closed, w.idle = true, 0
	w.called.Broadcast()
	w.mu.Unlock()
	w.running.Wait()
}
