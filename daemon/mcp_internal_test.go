package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A call of a client that does not end, such as one that waits for a person, leaves time
// for what else ends when the agent stops.
func TestMCPLeavesTimeToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMCPFace(&Daemon{})
		f.pending["a"] = 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		f.finish(ctx)
		if took := time.Since(begun); took != time.Minute/2 {
			t.Errorf("it waited for %s", took)
		}
		f.stop()
		f.running.Wait()
	})
}
