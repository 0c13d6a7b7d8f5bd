//go:build !race

package contain_test

const raceEnabled = false
