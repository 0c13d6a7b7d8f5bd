package sdnotify

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic is CLOCK_MONOTONIC, or 0 where there is none.
func Monotonic() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
