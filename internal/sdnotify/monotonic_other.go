//go:build !linux

package sdnotify

import "time"

// Monotonic is CLOCK_MONOTONIC, or 0 where there is none. systemd runs on Linux.
func Monotonic() time.Duration { return 0 }
