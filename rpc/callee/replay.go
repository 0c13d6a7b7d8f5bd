package callee

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// maxRemembered bounds the requests that a callee remembers, at some 50 bytes each.
const maxRemembered = 1 << 20

// A replayCache remembers the proven requests that were accepted, each until its
// deadline: after that, a replay is refused for being late. It is safe for
// concurrent use.
type replayCache struct {
	seed maphash.Seed

	mu    sync.Mutex
	taken map[uint64]struct{} // guarded by mu
	// until holds the keys of taken by the second in which they may be
	// forgotten; guarded by mu
	until map[int64][]uint64
	swept int64 // guarded by mu; the seconds before are gone from until
}

func newReplayCache() *replayCache {
	return &replayCache{seed: maphash.MakeSeed(), taken: map[uint64]struct{}{}, until: map[int64][]uint64{}}
}

// take remembers a request until the given time. first is false for a request that
// is remembered already. full means that there is no room: a request that cannot be
// remembered must not be accepted either.
//
// 64 bits of a hash with a secret seed tell requests apart, so nobody can construct
// a collision. With a million requests remembered, the chance that the next one
// collides is 1 in 10^13.
func (c *replayCache) take(from envelope.Address, messageID string, until, now time.Time) (first, full bool) {
	var h maphash.Hash
	h.SetSeed(c.seed)
	h.WriteString(string(from))
	h.WriteByte(0) // in no address
	h.WriteString(messageID)
	key := h.Sum64()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now.Unix())
	if _, ok := c.taken[key]; ok {
		return false, false
	}
	if len(c.taken) >= maxRemembered {
		return false, true
	}
	// Rounded up: forgetting early would let a replay in, forgetting late costs a
	// little memory.
	second := until.Unix() + 1
	c.taken[key] = struct{}{}
	c.until[second] = append(c.until[second], key)
	return true, false
}

// sweep forgets the requests whose time was over before the second now. It walks
// over the seconds since the last sweep, so its cost is that of what was remembered
// in them.
func (c *replayCache) sweep(now int64) {
	if c.swept == 0 || now-c.swept > int64(2*rpc.MaxTimeout/time.Second) {
		// The clock has jumped, or no request came for long: look at every second.
		for second := range c.until {
			c.forget(second, now)
		}
		c.swept = now
		return
	}
	for ; c.swept < now; c.swept++ {
		c.forget(c.swept, now)
	}
}

// forget drops the requests of one second, unless that second is not over.
func (c *replayCache) forget(second, now int64) {
	if second >= now {
		return
	}
	for _, key := range c.until[second] {
		delete(c.taken, key)
	}
	delete(c.until, second)
}

// len is the number of remembered requests.
func (c *replayCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.taken)
}
