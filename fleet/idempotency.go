package fleet

import (
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// Idempotency says where a member remembers the requests that it has served, so that a
// repeated one does not run again. How long it does is [Limits.IdempotencyTTL].
type Idempotency struct {
	// Shared keeps it on NATS for all replicas of the member. Otherwise each replica
	// remembers only what it has served itself.
	Shared bool
	// Lease is how long a replica may be silent about a request that it serves, before
	// the others take it for dead. 0 stands for the default of 10 s. Only if Shared, as is
	// Replicas.
	Lease time.Duration
	// Replicas is how many servers of a cluster keep what is shared, from 1 to 5; 0 is 1.
	Replicas int
	// Position is where the block stands.
	Position Position
}

// decodeIdempotency reads the block idempotency.
func decodeIdempotency(v strictyaml.Value) (i Idempotency) {
	if !v.Present() {
		return i
	}
	const (
		minLease    = time.Second
		maxLease    = 5 * time.Minute
		maxReplicas = 5 // of a JetStream stream
	)
	o := v.Object()
	defer o.Done()
	i.Position = v.Position()
	i.Shared = o.Get("store").Enum("local", "shared") == "shared"
	for name, read := range map[string]func(strictyaml.Value){
		"leaseMs":  func(v strictyaml.Value) { i.Lease = millisFrom(v, minLease, maxLease) },
		"replicas": func(v strictyaml.Value) { i.Replicas = int(v.Int(1, maxReplicas)) },
	} {
		setting := o.Get(name)
		if read(setting); setting.Present() && !i.Shared {
			setting.Fault("it has no effect on a store that is not shared", "say `store: shared`, or leave it out")
		}
	}
	return i
}
