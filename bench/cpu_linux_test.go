package bench_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the time that this thread has computed, on which other work on the
// machine has next to no influence.
func threadTime() (time.Duration, bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
