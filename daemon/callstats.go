package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// callStats count the requests that the agent serves, and pass every call on to the
// process's log, if that is to have a line for each, and to the access log. The counts
// are since the start of the process.
type callStats struct {
	next    rpc.AccessLog        // nil for none
	log     *slog.Logger         // nil for no line a call
	observe func(rpc.CallRecord) // nil for no observer

	mu           sync.Mutex
	byCapability map[string]*callCounts // guarded by mu
	byTenant     map[string]*callCounts // with envelope.NoTenant for none; guarded by mu
}

// callCounts are the counts of one capability, or of all.
type callCounts struct {
	requests, errors int
	busy             time.Duration // the sum of all latencies
	lastError        string        // a code, never a payload
}

func (c *callCounts) add(r *rpc.CallRecord) {
	c.requests++
	c.busy += r.Latency
	if r.Code != 0 {
		c.errors++
		c.lastError = r.Code.String()
	}
}

// RecordCall implements [rpc.AccessLog]. A request for a capability that the agent
// does not have belongs to none of its counts.
func (s *callStats) RecordCall(r rpc.CallRecord) {
	if r.Role == rpc.RoleCallee && r.Code != rpc.CodeNoCapability {
		s.count(&r)
	}
	if s.log != nil {
		logCall(s.log, &r)
	}
	if s.observe != nil {
		s.observe(r)
	}
	if s.next != nil {
		s.next.RecordCall(r)
	}
}

// logCall writes one line about a call, with the names of the audit records.
func logCall(log *slog.Logger, r *rpc.CallRecord) {
	attrs := []slog.Attr{
		slog.String("role", string(r.Role)), slog.String("peer", string(r.Peer)), slog.String("capability", r.Capability),
		slog.String("correlationId", r.CorrelationID), slog.String("traceId", r.TraceID),
		slog.String("mode", string(r.Mode)), slog.String("status", string(r.Status)),
		slog.Int("attempts", r.Attempts), slog.Float64("latencyMs", milliseconds(r.Latency)),
	}
	if r.Code != 0 {
		attrs = append(attrs, slog.String("code", r.Code.String()), slog.String("detectedBy", string(r.DetectedBy)))
	}
	if r.TenantID != "" {
		attrs = append(attrs, slog.String("tenantId", r.TenantID))
	}
	if r.SessionID != "" {
		attrs = append(attrs, slog.String("sessionId", r.SessionID))
	}
	if r.Origin != "" {
		attrs = append(attrs, slog.String("origin", r.Origin))
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "call", attrs...)
}

// Refuses implements [rpc.AccessLog].
func (s *callStats) Refuses() error {
	if s.next == nil {
		return nil
	}
	return s.next.Refuses()
}

// count adds one served request. Names that setCapabilities and setTenants were not
// given are left out: strangers choose them, and could fill the maps.
func (s *callStats) count(r *rpc.CallRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byCapability[r.Capability]
	if c == nil {
		return
	}
	c.add(r)
	// A tenant has no part in requests that may not name it.
	if t := s.byTenant[cmp.Or(r.TenantID, envelope.NoTenant)]; t != nil && r.Code != rpc.CodeTenantMismatch {
		t.add(r)
	}
}

// setCapabilities sets which capabilities are counted. Those that were counted
// before keep their counts: a reload is no restart.
func (s *callStats) setCapabilities(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byCapability = keep(s.byCapability, names)
}

// setTenants is setCapabilities for tenants.
func (s *callStats) setTenants(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byTenant = keep(s.byTenant, names)
}

// keep returns counts for names, with those that there were before. They are moved, not
// copied: no reader holds a *callCounts outside the lock.
func keep(before map[string]*callCounts, names []string) map[string]*callCounts {
	after := make(map[string]*callCounts, len(names))
	for _, name := range names {
		if after[name] = before[name]; before[name] == nil {
			after[name] = &callCounts{}
		}
	}
	return after
}

// tenants returns the counts of the tenants that the agent serves, by name.
func (s *callStats) tenants() []control.TenantLoad {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]control.TenantLoad, 0, len(s.byTenant))
	for _, name := range slices.Sorted(maps.Keys(s.byTenant)) {
		all = append(all, control.TenantLoad{Tenant: name, Requests: s.byTenant[name].requests, Errors: s.byTenant[name].errors})
	}
	return all
}

// capability returns the counts of one capability.
func (s *callStats) capability(name string) callCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCapability[name]; c != nil {
		return *c
	}
	return callCounts{}
}

// total returns the counts of all capabilities together.
func (s *callStats) total() (all callCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byCapability {
		all.requests += c.requests
		all.errors += c.errors
		all.busy += c.busy
	}
	return all
}
