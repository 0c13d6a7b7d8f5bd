package daemon

import "sync"

// departures are the ends of what a reload has replaced, or given up: they take place behind the
// back of the reload, which does not wait for calls that run. The zero value is ready.
type departures struct {
	mu      sync.Mutex
	stopped bool // guarded by mu
	ending  sync.WaitGroup
}

// begin has end run in a goroutine of its own, which wait waits for. Once the agent stops it runs
// at once, before begin returns: a reload may still run then, and nobody would wait for it.
func (d *departures) begin(end func()) {
	d.mu.Lock()
	stopped := d.stopped
	if !stopped {
		d.ending.Go(end)
	}
	d.mu.Unlock()
	if stopped {
		end()
	}
}

// wait waits for all ends, of which none begins behind anybody's back any more.
func (d *departures) wait() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.ending.Wait()
}
