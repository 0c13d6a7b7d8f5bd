package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// callStats count the calls that the agent makes and serves, and pass every call on to the
// process's log, if that is to have a line for each, and to the access log. The counts
// are since the start of the process.
type callStats struct {
	calls   *metrics.Calls
	next    rpc.AccessLog        // nil for none
	log     *slog.Logger         // nil for no line a call
	observe func(rpc.CallRecord) // nil for no observer

	mu       sync.Mutex
	byTenant map[string]*tenantCounts // with envelope.NoTenant for none; guarded by mu
}

// tenantCounts are the counts of one tenant.
type tenantCounts struct{ requests, errors int }

// RecordCall implements [rpc.AccessLog].
func (s *callStats) RecordCall(r rpc.CallRecord) {
	s.calls.Observe(&r)
	if r.Role == rpc.RoleCallee && r.Code != rpc.CodeNoCapability {
		s.countTenant(&r)
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
	if r.SpanID != "" {
		attrs = append(attrs, slog.String("spanId", r.SpanID))
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

// countTenant adds one served request. Names that setTenants was not given are left out:
// strangers choose them, and could fill the map. So are requests for capabilities that the
// agent does not have, and those that may not name their tenant.
func (s *callStats) countTenant(r *rpc.CallRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[cmp.Or(r.TenantID, envelope.NoTenant)]
	if t == nil || r.Code == rpc.CodeTenantMismatch || !s.calls.Serves(r.Capability) {
		return
	}
	t.requests++
	if r.Code != 0 {
		t.errors++
	}
}

// setTenants sets which tenants are counted. Those that were counted before keep their
// counts: a reload is no restart.
func (s *callStats) setTenants(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.byTenant
	s.byTenant = make(map[string]*tenantCounts, len(names))
	for _, name := range names {
		// Moved, not copied: no reader holds one outside the lock.
		if s.byTenant[name] = before[name]; before[name] == nil {
			s.byTenant[name] = &tenantCounts{}
		}
	}
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
