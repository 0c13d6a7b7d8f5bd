package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// Known are the names that calls are counted by. Its functions are called by calls: they return
// at once. A nil one knows nobody.
type Known struct {
	// Served are the names of the agent's own capabilities.
	Served []string
	// Caller reports whether an agent may be named as the caller of requests.
	Caller func(envelope.Address) bool
	// Offers reports whether a peer of the agent offers a capability, and Peer whether it is one.
	Offers func(peer envelope.Address, capability string) bool
	Peer   func(envelope.Address) bool
	// Objective is how long a request for a capability of the agent may take; nil for a second.
	Objective func(capability string) time.Duration
}

// Served counts the requests of one capability, or of all. A request for a capability that the
// agent does not have belongs to none.
type Served struct {
	Requests, Errors int
	Busy             time.Duration // the sum of all latencies
	LastError        string        // a code, never a payload
}

// Calls counts the calls of one agent, at both ends. It is safe for concurrent use.
type Calls struct {
	mu     sync.RWMutex
	known  Known              // guarded by mu
	pairs  map[pair]*series   // guarded by mu
	served map[string]*totals // by capability; guarded by mu
}

// A pair names what calls are counted by.
type pair struct {
	role       rpc.Role
	peer       envelope.Address
	capability string
}

func (p pair) compare(q pair) int {
	return cmp.Or(strings.Compare(string(p.role), string(q.role)), strings.Compare(string(p.peer), string(q.peer)), strings.Compare(p.capability, q.capability))
}

// totals are those of a capability, whoever calls it. They go on while its callers change.
type totals struct {
	requests, errors, busy, slow atomic.Int64
	objective                    atomic.Int64 // nanoseconds, over which a request is slow
	lastError                    atomic.Uint32

	mu   sync.Mutex
	past []sample // of the last hour, oldest first; guarded by mu
}

// codes is more than there are codes; statuses have a place each.
const (
	codes    = 64
	statuses = 6
)

// A series has the counts of one pair. It is made with the first call.
type series struct {
	totals    *totals // nil where they are nobody's
	codes     [codes]atomic.Uint64
	retries   atomic.Uint64
	limited   atomic.Uint64
	latencies [statuses]atomic.Pointer[latency]
	exemplar  atomic.Int64 // when the last one was kept, in nanoseconds
}

// NewCalls returns counters of an agent that knows nobody yet.
func NewCalls() *Calls {
	return &Calls{pairs: map[pair]*series{}, served: map[string]*totals{}}
}

// Know puts names in force. What was counted under names that are there still goes on, and the
// series of the others end.
func (c *Calls) Know(k Known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = k
	served := make(map[string]*totals, len(k.Served))
	for _, name := range k.Served {
		if served[name] = c.served[name]; served[name] == nil {
			served[name] = &totals{}
		}
		objective := time.Second
		if k.Objective != nil {
			objective = k.Objective(name)
		}
		served[name].objective.Store(int64(objective))
	}
	c.served = served
	for p := range c.pairs {
		if c.nameOf(p) != p {
			delete(c.pairs, p)
		}
	}
}

// nameOf is the pair under which calls of p are counted. The caller holds mu.
func (c *Calls) nameOf(p pair) pair {
	if p.role == rpc.RoleCallee {
		if c.served[p.capability] == nil {
			p.capability = Other
		}
		if c.known.Caller == nil || !c.known.Caller(p.peer) {
			p.peer = Other
		}
		return p
	}
	if c.known.Offers == nil || !c.known.Offers(p.peer, p.capability) {
		p.capability = Other
	}
	if c.known.Peer == nil || !c.known.Peer(p.peer) {
		p.peer = Other
	}
	return p
}

// Observe counts a call that has ended. It neither blocks nor allocates, but for the first calls
// of each pair, and for ten exemplars a second.
func (c *Calls) Observe(r *rpc.CallRecord) {
	s := c.find(r)
	code := r.Code
	if code >= codes { // no such code exists: a test holds that
		code = rpc.CodeRemote
	}
	s.codes[code].Add(1)
	limited := 0
	for _, failed := range r.Retried {
		if failed == rpc.CodeRateLimited {
			limited++
		}
	}
	if code == rpc.CodeRateLimited {
		limited++
	}
	if len(r.Retried) > 0 {
		s.retries.Add(uint64(len(r.Retried)))
	}
	if limited > 0 {
		s.limited.Add(uint64(limited))
	}
	if t := s.totals; t != nil && code != rpc.CodeNoCapability {
		t.requests.Add(1)
		t.busy.Add(int64(r.Latency))
		if code != 0 {
			t.errors.Add(1)
			t.lastError.Store(uint32(code))
		}
		if int64(r.Latency) > t.objective.Load() {
			t.slow.Add(1)
		}
	}
	c.observeLatency(s, r, code)
}

// find returns the counters of a call. A sender whose proof fails is not whom it claims to be.
func (c *Calls) find(r *rpc.CallRecord) *series {
	p := pair{r.Role, r.Peer, r.Capability}
	if r.Role == rpc.RoleCallee && r.Code == rpc.CodeAuthFailed {
		p.peer = Other
	}
	c.mu.RLock()
	s := c.pairs[p]
	if s == nil { // the first one, or a stranger's
		p = c.nameOf(p)
		s = c.pairs[p]
	}
	c.mu.RUnlock()
	if s == nil {
		s = c.bind(p)
	}
	return s
}

// bind makes the counters of a pair.
func (c *Calls) bind(p pair) *series {
	c.mu.Lock()
	defer c.mu.Unlock()
	p = c.nameOf(p) // the names may be others by now
	s := c.pairs[p]
	if s == nil {
		s = &series{}
		if p.role == rpc.RoleCallee {
			s.totals = c.served[p.capability]
		}
		c.pairs[p] = s
	}
	return s
}

// Served returns the counts of one capability since the process started.
func (c *Calls) Served(capability string) Served {
	c.mu.RLock()
	t := c.served[capability]
	c.mu.RUnlock()
	if t == nil {
		return Served{}
	}
	s := Served{Requests: int(t.requests.Load()), Errors: int(t.errors.Load()), Busy: time.Duration(t.busy.Load())}
	if code := rpc.Code(t.lastError.Load()); code != 0 { //nolint:gosec // a code was stored
		s.LastError = code.String()
	}
	return s
}

// Total returns the counts of all capabilities together.
func (c *Calls) Total() (all Served) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, t := range c.served {
		all.Requests += int(t.requests.Load())
		all.Errors += int(t.errors.Load())
		all.Busy += time.Duration(t.busy.Load())
	}
	return all
}

// Serves reports whether a capability is one of the agent's own.
func (c *Calls) Serves(capability string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.served[capability] != nil
}

// snapshot lists the series in their order.
func (c *Calls) snapshot() (pairs []pair, all []*series) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for p := range c.pairs {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, pair.compare)
	for _, p := range pairs {
		all = append(all, c.pairs[p])
	}
	return pairs, all
}

// called returns the name of a pair at the caller's end, as calls are counted by it.
func (c *Calls) called(peer envelope.Address, capability string) pair {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.nameOf(pair{rpc.RoleCaller, peer, capability})
}

// either returns the names of a peer and a capability as calls are counted by them, at the end that
// knows more of them: a violation does not say which one has found it.
func (c *Calls) either(peer envelope.Address, capability string) (envelope.Address, string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	caller, callee := c.nameOf(pair{rpc.RoleCaller, peer, capability}), c.nameOf(pair{rpc.RoleCallee, peer, capability})
	if caller.peer == peer && caller.capability == capability {
		return peer, capability
	}
	return callee.peer, callee.capability
}

// collect sends the counts and the histograms of all calls.
func (c *Calls) collect(e *emitter) {
	c.collectSlow(e)
	pairs, all := c.snapshot()
	for i, p := range pairs {
		s, role, peer := all[i], string(p.role), string(p.peer)
		for code := range s.codes {
			n := s.codes[code].Load()
			switch {
			case n == 0:
			case code == 0:
				e.send(CallsTotal, float64(n), role, peer, p.capability, string(rpc.StatusOK), "")
			default:
				e.send(CallsTotal, float64(n), role, peer, p.capability, string(rpc.Code(code).Status()), rpc.Code(code).String())
			}
		}
		e.send(RateLimitedTotal, float64(s.limited.Load()), role, peer, p.capability)
		duration := ServerCallDuration
		if p.role == rpc.RoleCaller {
			duration = ClientCallDuration
			e.send(RetriesTotal, float64(s.retries.Load()), peer, p.capability)
		}
		for i := range s.latencies {
			if l := s.latencies[i].Load(); l != nil {
				l.send(e, duration, System, p.capability, peer, string(statusAt(i)))
			}
		}
	}
}

// exemplarInterval is the least time between two exemplars of one pair: each costs memory.
const exemplarInterval = 100 * time.Millisecond

// observeLatency adds the latency of a call to the histogram of its status.
func (c *Calls) observeLatency(s *series, r *rpc.CallRecord, code rpc.Code) {
	i := statusIndex(code)
	l := s.latencies[i].Load()
	if l == nil {
		s.latencies[i].CompareAndSwap(nil, newLatency())
		l = s.latencies[i].Load()
	}
	if r.Sampled && r.TraceID != "" {
		now, last := r.Start.Add(r.Latency).UnixNano(), s.exemplar.Load()
		if now-last >= int64(exemplarInterval) && s.exemplar.CompareAndSwap(last, now) {
			l.observeTraced(r.Latency, r.TraceID)
			return
		}
	}
	l.observe(r.Latency)
}

// statusIndex is the place of the status of a code, 0 for a success.
func statusIndex(code rpc.Code) int {
	if code == 0 {
		return 0
	}
	all := allStatuses()
	return max(slices.Index(all[:], code.Status()), 1)
}

func statusAt(i int) rpc.Status { return allStatuses()[i] }

func allStatuses() [statuses]rpc.Status {
	return [...]rpc.Status{rpc.StatusOK, rpc.StatusError, rpc.StatusTimeout, rpc.StatusAbandoned, rpc.StatusBusy, rpc.StatusSchemaViolation}
}
