package check

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// RecordTimeout bounds a write that must happen although the call has ended.
const RecordTimeout = 10 * time.Second

// Complete checks that records has what an end of a call needs: the log of schema
// violations always, and that of refusals where the end can refuse.
func Complete(records rpc.Records, refuses bool) error {
	switch {
	case records.Auditor == nil:
		return errors.New("Records.Auditor is required")
	case records.Refusals == nil && refuses:
		return errors.New("Records.Refusals is required with an Authorizer or a Limiter")
	}
	return nil
}

// Violation writes v, even when the call has been cancelled meanwhile: cancelling a
// call must not keep its violation out of the log.
func Violation(ctx context.Context, records rpc.Records, v rpc.SchemaViolation) *rpc.Error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)
	defer cancel()
	v.Time = time.Now()
	if err := records.Auditor.RecordSchemaViolation(ctx, v); err != nil {
		return rpc.NewError(rpc.CodeAuditFailed, err, "the %s of %s fails its schema, and the audit record of it could not be written", v.Side, v.Capability).Explain()
	}
	return nil
}

// Exceeded writes r, about a payload whose check err cut short. An end without a log of
// refusals keeps no record of it.
func Exceeded(ctx context.Context, records rpc.Records, r rpc.Refusal, err *rpc.Error) *rpc.Error {
	if records.Refusals == nil {
		return nil
	}
	r.Side, r.Reason = err.Side, err.Message
	return Refusal(ctx, records, r)
}

// Refusal writes r before anybody learns of it, even when the call has been
// cancelled meanwhile.
func Refusal(ctx context.Context, records rpc.Records, r rpc.Refusal) *rpc.Error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)
	defer cancel()
	r.Time = time.Now()
	if err := records.Refusals.RecordRefusal(ctx, r); err != nil {
		return rpc.NewError(rpc.CodeAuditFailed, err, "the call of %s is refused, and the audit record of it could not be written", truncate.String(r.Capability, wire.MaxName)).Explain()
	}
	return nil
}

// Recordable refuses a call whose access record could not be written.
func Recordable(records rpc.Records) *rpc.Error {
	if records.Access == nil {
		return nil
	}
	if err := records.Access.Refuses(); err != nil {
		return rpc.NewError(rpc.CodeAuditFailed, err, "no record of the call can be kept").Explain()
	}
	return nil
}
