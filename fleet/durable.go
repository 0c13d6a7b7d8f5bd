package fleet

import (
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// Durable configures the queues of durable calls, see
// [capability.DeliveryDurable]. A setting of 0 stands for the transport's
// default, which is given here.
type Durable struct {
	// Replicas is how many servers of a cluster store each stream, from 1 to
	// 5.
	Replicas int
	// AckWait is how long a replica of the agent may hold a request without a
	// sign of progress before the broker delivers it again. The default is 30
	// s.
	AckWait time.Duration
	// MaxDeliver is how many times a request is delivered before it is
	// dead-lettered. The default is 5.
	MaxDeliver int
	// ResultTTL is how long responses are stored. The default is 24 h.
	ResultTTL time.Duration
	// DeadTTL is how long dead letters are stored. The default is 30 days.
	DeadTTL time.Duration
	// MaxBytes bounds the queued requests. The default is 256 MiB.
	MaxBytes int64
	// Position is where the block stands.
	Position Position
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
		// A redelivered request must still find its response, or its skill
		// would run twice.
		minResultTTL = time.Hour
		minAckWait   = time.Second
		maxBytes     = 1 << 50
	)
	o := v.Object()
	defer o.Done()
	d.Position = v.Position()
	d.Replicas = int(o.Get("replicas").Int(1, maxReplicas))
	d.AckWait = millisFrom(o.Get("ackWaitMs"), minAckWait, maxDuration)
	d.MaxDeliver = int(o.Get("maxDeliver").Int(1, maxDeliver))
	d.ResultTTL = millisFrom(o.Get("resultTtlMs"), minResultTTL, year)
	d.DeadTTL = millisFrom(o.Get("deadTtlMs"), time.Minute, year)
	d.MaxBytes = o.Get("maxBytes").Int(1<<20, maxBytes)
	return d
}

// millisFrom reads a duration in ms between two bounds.
func millisFrom(v strictyaml.Value, low, high time.Duration) time.Duration {
	return time.Duration(v.Int(low.Milliseconds(), high.Milliseconds())) * time.Millisecond
}
