package serve

import "runtime/debug"

// gcPercent is how much garbage the process lets come to be before it collects, in percent
// of what is in use. An agent has little in use, a few megabytes, so that under load Go's own
// 100 has it collect tens of times a second. What that costs in memory is a few times those
// megabytes, under load alone.
const gcPercent = 300

// relaxGC sets gcPercent, unless the operator has chosen another number.
func relaxGC(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
