package serve

import (
	"runtime/debug"

	"github.com/agentd/agentd/internal/programpages"
)

// releaseMemory gives back what a start or a reload has needed. What they have read is garbage
// by now, several times what stays of it, and without calls no collection would come for
// minutes. Of the program's file they have mapped several times what serves calls.
func releaseMemory() {
	debug.FreeOSMemory()
	_ = programpages.Release() // where /proc cannot be read, the pages stay mapped
}
