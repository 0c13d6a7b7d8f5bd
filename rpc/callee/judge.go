package callee

import (
	"context"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// Judge is the verdict of an agent's end of a call on one payload of capability c, for tests of
// skills that run without one: nil, or the error that the caller would get.
func Judge(ctx context.Context, self envelope.Address, c *capability.Capability, side rpc.Side, payload []byte) *rpc.Error {
	err := badOutput(side, check.Payload(ctx, check.Contract(c, side), payload, side, c.Name))
	if err != nil {
		err.DetectedBy = self
	}
	return err
}

// JudgeFailure is the error that the caller gets for the failure that a skill reports to it.
func JudgeFailure(self envelope.Address, public *rpc.SkillError) *rpc.Error {
	err := publicError(public, public)
	err.DetectedBy = self
	return err
}

// badOutput makes an answer that is no JSON the skill's own fault.
func badOutput(side rpc.Side, err *rpc.Error) *rpc.Error {
	if side == rpc.SideResponse && err != nil && err.Code == rpc.CodeInvalidPayload {
		return rpc.NewError(rpc.CodeBadSkillOutput, err, "the skill's answer is not JSON")
	}
	return err
}

// publicError is what travels of a failure that is for the caller.
func publicError(public *rpc.SkillError, cause error) *rpc.Error {
	code := public.Code
	if code != rpc.CodeBadSkillOutput && code != rpc.CodeDeadlineExceeded {
		code = rpc.CodeHandlerError
	}
	e := rpc.NewError(code, cause, "%s", truncate.String(public.Message, wire.MaxText))
	e.Retryable, e.RetryIn = public.Retryable, max(public.RetryIn, 0)
	return e
}
