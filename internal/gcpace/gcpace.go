package gcpace

import "runtime/debug"

// Percent is how much garbage the process lets come to be before it collects, in percent
// of what is in use. An agent has little in use, a few megabytes, so that under load Go's own
// 100 has it collect tens of times a second. What that costs in memory is a few times those
// megabytes, under load alone.
const Percent = 300

// Relax sets [Percent], unless the operator has chosen another number by the variable GOGC.
func Relax(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(Percent)
	}
}
