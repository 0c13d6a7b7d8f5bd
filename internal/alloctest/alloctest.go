package alloctest

import "testing"

// measurements is how often [Least] measures at most.
const measurements = 5

// Least returns how often f allocates, on average over so many runs: the least of several
// measurements. The runtime, goroutines that an earlier test has left, and a garbage
// collection that empties pools add to some measurements; what f does by itself is in all
// of them.
func Least(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for i := 1; i < measurements && least > 0; i++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
