//go:build !linux

package skill

import "time"

// usageOf is unknown on this system.
func usageOf(int) (cpu time.Duration, resident int64) { return 0, 0 }
