package metrics

import (
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// Counts returns what was counted of each pair, in their order: the same counts as the metrics
// have.
func (c *Calls) Counts() []control.CallCounts {
	pairs, all := c.snapshot()
	counts := make([]control.CallCounts, len(pairs))
	for i, p := range pairs {
		counts[i] = all[i].counts(p)
	}
	return counts
}

func (s *series) counts(p pair) control.CallCounts {
	counts := control.CallCounts{
		Role: p.role, Peer: p.peer, Capability: p.capability, Retries: s.retries.Load(), RateLimited: s.limited.Load(),
	}
	for code := range s.codes {
		n := s.codes[code].Load()
		counts.Calls += n
		if code == 0 || n == 0 {
			continue
		}
		if counts.Failed == nil {
			counts.Failed = map[string]uint64{}
		}
		counts.Failed[rpc.Code(code).String()] += n
	}
	var sum [nativeBuckets]uint64
	for i := range s.latencies {
		if l := s.latencies[i].Load(); l != nil {
			native, _ := l.load()
			for bucket, n := range native {
				sum[bucket] += n
			}
		}
	}
	for bucket, n := range sum {
		if n > 0 {
			counts.Latencies = append(counts.Latencies, control.LatencyBucket{UpTo: upperBound(bucket), Calls: n})
		}
	}
	return counts
}

// Named returns the names that calls of a peer and a capability are counted by.
func (c *Calls) Named(role rpc.Role, peer envelope.Address, capability string) (envelope.Address, string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.nameOf(pair{role, peer, capability})
	return p.peer, p.capability
}
