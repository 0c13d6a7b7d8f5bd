package rpctest

import (
	"context"
	"strings"
	"sync"

	"github.com/agentd/agentd/rpc"
)

// A list of records, safe for concurrent use.
type list[T any] struct {
	mu  sync.Mutex
	all []T
}

func (l *list[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, v)
}

// All returns the records so far.
func (l *list[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]T(nil), l.all...)
}

// Violations is an [rpc.Auditor] that keeps records in memory.
type Violations struct {
	list[rpc.SchemaViolation]
	// Fail is returned, and nothing kept, if it is not nil.
	Fail error
}

// RecordSchemaViolation implements [rpc.Auditor].
func (v *Violations) RecordSchemaViolation(ctx context.Context, r rpc.SchemaViolation) error {
	if v.Fail != nil {
		return v.Fail
	}
	v.add(r)
	return ctx.Err()
}

// Refusals is an [rpc.RefusalAuditor] that keeps records in memory.
type Refusals struct {
	list[rpc.Refusal]
	// Fail is returned, and nothing kept, if it is not nil.
	Fail error
}

// RecordRefusal implements [rpc.RefusalAuditor].
func (r *Refusals) RecordRefusal(ctx context.Context, refusal rpc.Refusal) error {
	if r.Fail != nil {
		return r.Fail
	}
	r.add(refusal)
	return ctx.Err()
}

// Proofs sums up refused proofs, such as "callee missing-auth, caller replayed".
func (r *Refusals) Proofs() string {
	var all []string
	for _, refusal := range r.All() {
		if refusal.Proof == nil || refusal.Code != rpc.CodeAuthFailed {
			all = append(all, "not a proof")
			continue
		}
		all = append(all, string(refusal.Role)+" "+refusal.Proof.Reason.String())
	}
	return strings.Join(all, ", ")
}

// Calls is an [rpc.AccessLog] that keeps records in memory.
type Calls struct {
	list[rpc.CallRecord]
	// Refusal is why no call can be recorded, or nil.
	Refusal error
}

// RecordCall implements [rpc.AccessLog].
func (c *Calls) RecordCall(r rpc.CallRecord) { c.add(r) }

// Refuses implements [rpc.AccessLog].
func (c *Calls) Refuses() error { return c.Refusal }

// A Ledger is an [rpc.Auditor] and an [rpc.RefusalAuditor] that keeps one line for
// each record.
type Ledger struct{ list[string] }

// RecordRefusal implements [rpc.RefusalAuditor].
func (l *Ledger) RecordRefusal(_ context.Context, r rpc.Refusal) error {
	l.add(r.Code.String())
	return nil
}

// RecordSchemaViolation implements [rpc.Auditor].
func (l *Ledger) RecordSchemaViolation(_ context.Context, v rpc.SchemaViolation) error {
	l.add("violation of the " + string(v.Side))
	return nil
}

// Text is all lines, joined by commas.
func (l *Ledger) Text() string { return strings.Join(l.All(), ", ") }
