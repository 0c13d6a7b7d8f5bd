package rpc

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// maxIdleWorkers bounds the goroutines that wait for requests.
const maxIdleWorkers = 256

// workers run requests, each in a goroutine that afterwards waits for another
// one. A goroutine that is used again keeps the stack that it has grown; a new
// one would have to copy its own several times on the way into validation.
type workers struct {
	next    chan *inboundCall // without room: a send succeeds only where a worker waits
	idle    atomic.Int64
	running sync.WaitGroup
	closing sync.Once
}

func newWorkers() *workers { return &workers{next: make(chan *inboundCall)} }

// start serves call beside the caller: a request never waits for another one
// to end.
func (w *workers) start(call *inboundCall) {
	select {
	case w.next <- call:
	default:
		w.running.Go(func() { w.work(call) })
	}
}

// stackRoom makes a worker's own frame more than a quarter of 16 KB. The garbage
// collector halves a stack of which a waiting goroutine uses less, and the next
// request would have to grow it again.
const stackRoom = 4500

func (w *workers) work(call *inboundCall) {
	var room [stackRoom]byte
	defer runtime.KeepAlive(&room)
	for more := true; more; {
		call.serveCounted()
		if w.idle.Add(1) > maxIdleWorkers {
			w.idle.Add(-1)
			return
		}
		call, more = <-w.next
		w.idle.Add(-1)
	}
}

// stop ends the workers, and waits for them. No request may run or be started
// any more.
func (w *workers) stop() {
	w.closing.Do(func() { close(w.next) })
	w.running.Wait()
}
