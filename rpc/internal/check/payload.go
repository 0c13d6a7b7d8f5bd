package check

import (
	"context"
	"strconv"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/schema"
)

// Contract returns the contract of one side of f. Nil means that any JSON will do.
func Contract(f *capability.Capability, side rpc.Side) *capability.Contract {
	switch {
	case f == nil:
		return nil
	case side == rpc.SideRequest:
		return f.Input
	}
	return f.Output
}

// Payload validates one payload of the capability name. Without a contract it need
// only be JSON. The error has CodeInvalidPayload, CodeSchemaViolation,
// CodeValidationExceeded or, for a contract without a validator, CodeInternal.
func Payload(ctx context.Context, contract *capability.Contract, payload []byte, side rpc.Side, name string) *rpc.Error {
	if contract == nil {
		if err := ijson.Check(payload, wire.MaxDepth); err != nil {
			return rpc.NewError(rpc.CodeInvalidPayload, err, "the %s is not JSON: %s", side, err)
		}
		return nil
	}
	if contract.Validator == nil {
		return rpc.NewError(rpc.CodeInternal, nil, "the contract of %q was loaded for inspection only and cannot validate its %s", name, side)
	}
	var report schema.Report
	if side == rpc.SideRequest {
		report = contract.CheckArgumentsWithin(ctx, payload)
	} else {
		report = contract.CheckWithin(ctx, payload)
	}
	switch report.Verdict {
	case schema.Valid:
		return nil
	case schema.Malformed:
		return rpc.NewError(rpc.CodeInvalidPayload, report.Syntax, "the %s is not JSON: %s", side, report.Syntax)
	case schema.Exceeded:
		err := rpc.NewError(rpc.CodeValidationExceeded, report.Exceeded, "capability %q %s: %s", name, side, report.Exceeded)
		err.Side = side
		return err
	}
	err := rpc.NewError(rpc.CodeSchemaViolation, nil, "capability %q %s failed schema validation: %s", name, side, summary(report))
	err.Side, err.Violations, err.ViolationsOmitted = side, report.Violations, report.Omitted
	return err
}

// summary puts the first violations into one line.
func summary(r schema.Report) string {
	const most = 3
	s := ""
	for i, v := range r.Violations[:min(most, len(r.Violations))] {
		if i > 0 {
			s += "; "
		}
		if v.Path != "" {
			s += v.Path + " "
		}
		s += v.Message
	}
	more := len(r.Violations) - most + r.Omitted
	switch {
	case more <= 0:
		return s
	case r.Omitted >= schema.MaxOmitted: // counting ends there
		return s + "; and at least " + strconv.Itoa(more) + " more"
	}
	return s + "; and " + strconv.Itoa(more) + " more"
}
