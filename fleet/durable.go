package fleet

import (
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// Durable says how calls are kept that must outlive a process, see
// [capability.DeliveryDurable]. 0 leaves a setting to package durable's default.
type Durable struct {
	// Replicas is how many servers of a cluster keep each stream, from 1 to 5.
	Replicas int
	// AckWait is how long a replica of the agent may be silent about a request
	// before another one gets it. Default 30 s.
	AckWait time.Duration
	// MaxDeliver is how many attempts a request gets before it is put aside.
	// Default 5.
	MaxDeliver int
	// ResultTTL is how long answers are kept. Default 24 h.
	ResultTTL time.Duration
	// DeadTTL is how long dead letters are kept. Default 30 days.
	DeadTTL time.Duration
	// MaxBytes bounds the requests that wait. Default 256 MiB.
	MaxBytes int64
}

// decodeDurable reads the block durable.
func decodeDurable(v strictyaml.Value) (d Durable) {
	if !v.Present() {
		return d
	}
	const (
		maxReplicas = 5 // of a JetStream stream
		maxDeliver  = 1000
		year        = 366 * 24 * time.Hour
		// An answer must be found when its request is delivered once more.
		minResultTTL = time.Hour
		minAckWait   = time.Second
		maxBytes     = 1 << 50
	)
	o := v.Object()
	defer o.Done()
	d.Replicas = int(o.Get("replicas").Int(1, maxReplicas))
	d.AckWait = millisFrom(o.Get("ackWaitMs"), minAckWait, maxDuration)
	d.MaxDeliver = int(o.Get("maxDeliver").Int(1, maxDeliver))
	d.ResultTTL = millisFrom(o.Get("resultTtlMs"), minResultTTL, year)
	d.DeadTTL = millisFrom(o.Get("deadTtlMs"), time.Minute, year)
	d.MaxBytes = o.Get("maxBytes").Int(1<<20, maxBytes)
	return d
}

// millisFrom reads a time in ms that must not be too short.
func millisFrom(v strictyaml.Value, low, high time.Duration) time.Duration {
	return time.Duration(v.Int(low.Milliseconds(), high.Milliseconds())) * time.Millisecond
}
