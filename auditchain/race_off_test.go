//go:build !race

package auditchain

// raceEnabled is true under the race detector, where processes start slowly.
const raceEnabled = false
