package fleet

import (
	"math"
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// A Worker says how the program of a skill stays to serve many calls. Package skill/worker
// has what the fields mean.
type Worker struct {
	// Instances is how many processes there are. The default is 1.
	Instances int
	// Eager starts them with the agent, and not with the first call.
	Eager bool
	// Concurrency bounds the calls that one process serves at once; 0 leaves it to the
	// program.
	Concurrency int
	// MaxCalls, MaxAge and MaxMemoryBytes are after how much a process is replaced; 0 is
	// never.
	MaxCalls       int
	MaxAge         time.Duration
	MaxMemoryBytes int64
	// IdleTimeout is after how long without a call a process ends until a call needs it; 0 is
	// never. One that was started with the agent stays.
	IdleTimeout time.Duration
	// StartTimeout is how long a process may take until it serves. The default is 30 s.
	StartTimeout time.Duration
}

const (
	mostInstances      = 256
	mostConcurrency    = 1024
	defaultWorkerStart = 30 * time.Second
)

// decodeWorker reads the runner of a skill that stays: the keys of a process, and its own.
func decodeWorker(v strictyaml.Value, p paths) (*Process, *Worker) {
	const month, leastMemory = 31 * 24 * time.Hour, 1 << 20
	o := v.Object()
	defer o.Done()
	program := decodeProgram(o, p)
	w := &Worker{
		Instances:      int(o.Get("instances").Int(1, mostInstances)),
		Eager:          o.Get("start").Enum("lazy", "eager") == "eager",
		Concurrency:    int(o.Get("concurrency").Int(1, mostConcurrency)),
		MaxCalls:       int(o.Get("maxCalls").Int(1, math.MaxInt32)),
		MaxAge:         o.Get("maxAgeMs").Millis(month),
		MaxMemoryBytes: o.Get("maxMemoryBytes").Int(leastMemory, math.MaxInt64),
		IdleTimeout:    o.Get("idleTimeoutMs").Millis(month),
		StartTimeout:   o.Get("startTimeoutMs").Millis(maxDuration),
	}
	w.Instances = max(w.Instances, 1)
	if w.StartTimeout == 0 {
		w.StartTimeout = defaultWorkerStart
	}
	return program, w
}
