package skill

import (
	"os"
	"sync"
	"time"
)

// A Usage notes what the programs of one skill use. The zero value is ready, and nil notes
// nothing. It is safe for concurrent use.
type Usage struct {
	mu      sync.Mutex
	starts  int64            // guarded by mu
	ended   time.Duration    // the processor time of those that have ended; guarded by mu
	running map[int]struct{} // process ids; guarded by mu
}

// Used is what the programs of one skill have used until now.
type Used struct {
	// Starts counts them, and Running is how many there are.
	Starts  int64
	Running int
	// CPU is the processor time of all of them, ResidentBytes the memory of those that run. Both
	// are 0 on systems that do not show them.
	CPU           time.Duration
	ResidentBytes int64
}

// started notes a program.
func (u *Usage) started(pid int) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.starts++
	if u.running == nil {
		u.running = map[int]struct{}{}
	}
	u.running[pid] = struct{}{}
}

// finished notes that a program has been waited for.
func (u *Usage) finished(pid int, state *os.ProcessState) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.running, pid)
	if state != nil {
		u.ended += state.UserTime() + state.SystemTime()
	}
}

// Running is how many programs run.
func (u *Usage) Running() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.running)
}

// Read returns what has been used. Under the lock no program is counted twice, as one that runs
// and one that has ended.
func (u *Usage) Read() Used {
	u.mu.Lock()
	defer u.mu.Unlock()
	used := Used{Starts: u.starts, Running: len(u.running), CPU: u.ended}
	for pid := range u.running {
		cpu, resident := usageOf(pid)
		used.CPU += cpu
		used.ResidentBytes += resident
	}
	return used
}
