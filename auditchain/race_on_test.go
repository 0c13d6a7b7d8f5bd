//go:build race

package auditchain_test

// raceEnabled is true under the race detector, where processes start slowly.
const raceEnabled = true
