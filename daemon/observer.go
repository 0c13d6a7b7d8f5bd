package daemon

import (
	"context"

	"github.com/agentd/agentd/rpc"
)

// An Observer learns what happens to the calls of this process's agents, as it happens: for
// a person who watches. It is safe for concurrent use, and its methods return at once: calls
// wait for them.
type Observer interface {
	// Call is called at each end of a call, once it has ended.
	Call(agent string, r rpc.CallRecord)
	// Violation is called at the end that has found a payload to break its schema, once
	// that is recorded, and before Call.
	Violation(agent string, v rpc.SchemaViolation)
}

// An observedAuditor also shows an Observer the violations that are recorded.
type observedAuditor struct {
	auditor
	agent    string
	observer Observer
}

// RecordSchemaViolation implements [rpc.Auditor].
func (a observedAuditor) RecordSchemaViolation(ctx context.Context, v rpc.SchemaViolation) error {
	err := a.auditor.RecordSchemaViolation(ctx, v)
	a.observer.Violation(a.agent, v)
	return err
}

// callAuditor is where the two ends of calls record violations.
func (d *Daemon) callAuditor() rpc.Auditor {
	var a rpc.Auditor = d.audit
	if d.cfg.Observer != nil {
		a = observedAuditor{d.audit, d.Member().ID, d.cfg.Observer}
	}
	return violationCounter{a, d.auditCounts, d.stats.calls}
}
