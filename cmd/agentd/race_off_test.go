//go:build !race

package main

// raceEnabled says whether the race detector slows the tests down.
const raceEnabled = false
