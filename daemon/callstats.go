package daemon

import (
	"sync"
	"time"

	"github.com/agentd/agentd/rpc"
)

// callStats count the requests that the agent has served, on their way to the
// access log.
type callStats struct {
	next rpc.AccessLog // nil for none

	mu           sync.Mutex
	byCapability map[string]*served // guarded by mu
}

// served is what one capability has done.
type served struct {
	requests, errors int
	busy             time.Duration
	lastError        string // a code, never a payload
}

// RecordCall implements [rpc.AccessLog]. Requests for a capability that is not
// there are nobody's.
func (s *callStats) RecordCall(r rpc.CallRecord) {
	if r.Role == rpc.RoleCallee && r.Code != rpc.CodeNoCapability {
		s.count(&r)
	}
	if s.next != nil {
		s.next.RecordCall(r)
	}
}

// Refuses implements [rpc.AccessLog].
func (s *callStats) Refuses() error {
	if s.next == nil {
		return nil
	}
	return s.next.Refuses()
}

func (s *callStats) count(r *rpc.CallRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byCapability[r.Capability]
	if one == nil {
		return
	}
	one.requests++
	one.busy += r.Latency
	if r.Code != 0 {
		one.errors++
		one.lastError = r.Code.String()
	}
}

// offer has the capabilities counted that the agent offers now, and goes on with
// the counts of those that it offered before.
func (s *callStats) offer(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.byCapability
	s.byCapability = make(map[string]*served, len(names))
	for _, name := range names {
		if s.byCapability[name] = before[name]; before[name] == nil {
			s.byCapability[name] = &served{}
		}
	}
}

// of is what one capability has done.
func (s *callStats) of(name string) served {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.byCapability[name]; one != nil {
		return *one
	}
	return served{}
}

// total is what all of them have done together.
func (s *callStats) total() (all served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.byCapability {
		all.requests += one.requests
		all.errors += one.errors
		all.busy += one.busy
	}
	return all
}
