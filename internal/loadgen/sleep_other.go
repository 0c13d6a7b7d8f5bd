//go:build !linux

package loadgen

import "time"

// PreciseSleep returns [time.Sleep] on this system.
func PreciseSleep() (sleep func(time.Duration), release func()) { return time.Sleep, func() {} }
