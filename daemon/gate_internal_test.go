package daemon

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What failed is tried again until it succeeds, or the agent stops; whoever asks
// learns whether it is news.
func TestFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f following
		var tries atomic.Int64
		var succeeds int64
		var try func()
		try = func() {
			n := tries.Add(1)
			var err error
			if n < succeeds {
				err = errors.New("no broker")
			}
			if failed := f.again(err, try); failed != (n > 1 && n <= succeeds) {
				t.Errorf("try %d: failed before: %v", n, failed)
			}
		}
		succeeds = 4
		try()
		time.Sleep(10 * refollow) // in the bubble
		synctest.Wait()
		if tries.Load() != 4 {
			t.Errorf("%d tries", tries.Load())
		}
		tries.Store(0)
		succeeds = 100
		try()
		f.close()
		time.Sleep(10 * refollow)
		synctest.Wait()
		if tries.Load() != 1 {
			t.Errorf("tried %d times after the end", tries.Load()-1)
		}
	})
}
