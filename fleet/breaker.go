package fleet

import (
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// A Breaker says when calls to a capability stop because most of them fail. Package
// policy has the rules.
type Breaker struct {
	// Off is set for `breaker: off`.
	Off bool
	// Threshold is the share of failed calls that opens a breaker, from 0.01 to 1. The
	// default is 0.9.
	Threshold float64
	// MinCalls is the least number of calls that a share is taken of. The default is
	// 20.
	MinCalls int
	// Window is how far a share looks back. The default is 30 s.
	Window time.Duration
	// CoolDown is how long a breaker stays open the first time, and MaxCoolDown at
	// most. The defaults are 5 s and 60 s.
	CoolDown, MaxCoolDown time.Duration
	// Probes is how many calls find out in each cool-down whether the callee works
	// again. The default is 3.
	Probes int
}

// DefaultBreaker returns the breaker of a member whose file has no such block.
func DefaultBreaker() Breaker {
	return Breaker{
		Threshold: 0.9, MinCalls: 20, Window: 30 * time.Second,
		CoolDown: 5 * time.Second, MaxCoolDown: time.Minute, Probes: 3,
	}
}

// decodeBreaker reads the key breaker: off, or a block on top of the defaults.
func decodeBreaker(v strictyaml.Value) Breaker {
	b := DefaultBreaker()
	switch {
	case !v.Present():
		return b
	case v.Kind() != strictyaml.Map:
		b.Off = v.Enum("off") == "off"
		return b
	}
	const (
		leastShare = 0.01
		maxCalls   = 1_000_000
	)
	o := v.Object()
	defer o.Done()
	if share := o.Get("threshold"); share.Present() {
		b.Threshold = share.Float(leastShare, 1)
	}
	for name, count := range map[string]*int{"minCalls": &b.MinCalls, "probes": &b.Probes} {
		// 0 stands for absent or faulty: the default stays.
		if n := o.Get(name).Int(1, maxCalls); n != 0 {
			*count = int(n)
		}
	}
	for name, d := range map[string]*time.Duration{"windowMs": &b.Window, "coolDownMs": &b.CoolDown} {
		if ms := o.Get(name).Millis(maxDuration); ms != 0 {
			*d = ms
		}
	}
	// A file that sets a longer first cool-down than the default maximum means it.
	b.MaxCoolDown = max(b.MaxCoolDown, b.CoolDown)
	if most := o.Get("maxCoolDownMs"); most.Present() {
		b.MaxCoolDown = millisFrom(most, b.CoolDown, maxDuration)
	}
	return b
}
