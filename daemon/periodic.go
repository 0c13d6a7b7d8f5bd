package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/agentd/agentd/daemon/metrics"
)

// A periodic does something again and again in the background. The zero value has not begun.
type periodic struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// begin calls do after each interval until close. ctx is that of the start, which does not bound it.
func (p *periodic) begin(ctx context.Context, interval time.Duration, do func(context.Context)) {
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				do(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// close ends it, and waits for a call that runs.
func (p *periodic) close() {
	if p.cancel != nil {
		p.cancel()
		p.running.Wait()
	}
}

// sampleRequests keeps how many requests were slow, so that status can say what the last minutes
// and the last hour were like.
func (d *Daemon) sampleRequests(ctx context.Context) error {
	d.sampling.begin(ctx, metrics.SampleEvery, func(context.Context) { d.stats.calls.Sample(time.Now()) })
	return nil
}
