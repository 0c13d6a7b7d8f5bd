//go:build !linux

package bench_test

import "time"

// threadTime is known on Linux alone.
func threadTime() (time.Duration, bool) { return 0, false }
