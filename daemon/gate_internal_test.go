package daemon

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What failed is tried again until it succeeds, or the agent stops; whoever asks
// learns whether it is news.
func TestFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f following
		tries, succeeds := 0, 4
		var try func()
		try = func() {
			tries++
			var err error
			if tries < succeeds {
				err = errors.New("no broker")
			}
			if failed := f.again(err, try); failed != (tries > 1 && tries <= succeeds) {
				t.Errorf("try %d: failed before: %v", tries, failed)
			}
		}
		try()
		time.Sleep(10 * refollow)
		synctest.Wait()
		if tries != 4 {
			t.Errorf("%d tries", tries)
		}
		tries, succeeds = 0, 100
		try()
		f.close()
		time.Sleep(10 * refollow)
		synctest.Wait()
		if tries != 1 {
			t.Errorf("tried %d times after the end", tries-1)
		}
	})
}
