package health

import (
	"sync"
	"time"
)

// Repeat calls look now, and again after each interval. stop ends that, and waits for a
// call that runs.
func Repeat(interval time.Duration, look func()) (stop func()) {
	look()
	var loop sync.WaitGroup
	end := make(chan struct{})
	loop.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				look()
			case <-end:
				return
			}
		}
	})
	return func() { close(end); loop.Wait() }
}
