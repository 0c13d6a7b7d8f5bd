//go:build race

package contain_test

// raceEnabled says that sync.Pool drops items at random, so that allocations
// cannot be counted.
const raceEnabled = true
