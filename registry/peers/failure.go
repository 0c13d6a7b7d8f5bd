package peers

import (
	"github.com/agentd/agentd/internal/peertool"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
)

// translate turns the failure of a call into that of a tool. Messages of calls are made to
// be shown: they have no payload and none of the callee's internals.
func translate(input peertool.Shape, e *rpc.Error) error {
	out := &registry.Error{Code: code(e), Message: e.Message, Retryable: e.Retryable}
	if e.Code == rpc.CodeSchemaViolation && e.Side != rpc.SideResponse {
		out.Violations = input.Locate(e.Violations) // where the caller's arguments have them
		out.Message = registry.ViolationText("the payload does not fit the contract of "+string(e.DetectedBy), out.Violations)
	}
	if out.Code == registry.RateLimitExceeded {
		out.Details = e.Details // the same body at both ends
	}
	return out
}

// code is the kind of a failure, for a model.
func code(e *rpc.Error) registry.Code {
	switch e.Code {
	case rpc.CodeInvalidRequest, rpc.CodeInvalidPayload, rpc.CodeValidationExceeded:
		return registry.InvalidArguments
	case rpc.CodeSchemaViolation:
		if e.Side == rpc.SideResponse {
			return registry.Failed
		}
		return registry.InvalidArguments
	case rpc.CodePayloadTooLarge:
		return registry.TooLarge
	case rpc.CodeDenied, rpc.CodeAuthFailed, rpc.CodeAuthRejected, rpc.CodeTenantMismatch:
		return registry.PermissionDenied
	case rpc.CodeRateLimited:
		return registry.RateLimitExceeded
	case rpc.CodeTimeout, rpc.CodeDeadlineExceeded:
		return registry.Timeout
	case rpc.CodeCancelled, rpc.CodeAbandoned:
		return registry.Canceled
	case rpc.CodeDisconnected, rpc.CodeNoResponders, rpc.CodePublishFailed:
		return registry.NetworkError
	case rpc.CodeNoCapability, rpc.CodeNoPeer:
		return registry.NotFound
	case rpc.CodeIdempotencyConflict:
		return registry.Conflict
	case rpc.CodeHandlerError, rpc.CodeBadSkillOutput, rpc.CodeInputRequired, rpc.CodeInternal, rpc.CodeRemote, rpc.CodeOutcomeUnknown:
		return registry.Failed
	default: // drift, a circuit, a full queue: what stands in the way may go
		return registry.Unavailable
	}
}
