package serve

import (
	"runtime/debug"

	"github.com/agentd/agentd/internal/programpages"
)

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

// releaseMemory gives back what a start or a reload has needed. What they have read is garbage
// by now, several times what stays of it, and without calls no collection would come for
// minutes. Of the program's file they have mapped several times what serves calls.
func releaseMemory() {
	debug.FreeOSMemory()
	_ = programpages.Release() // where /proc cannot be read, the pages stay mapped
}
