package daemon

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
)

// operator is the user of executions that the agent's operator asks for. Its rate limits
// are its own, and its permissions those of the agent.
const operator = "operator"

// RunAction executes one of the agent's actions for its operator, see [control.Agent]. It
// leaves an access record like a call, in which the peer is the agent itself: no agent
// calls itself otherwise.
func (d *Daemon) RunAction(ctx context.Context, inv action.Invocation) action.Outcome {
	set, ok := d.currentActions()
	if !ok || !d.ready.Load() {
		set.releaseIf(ok)
		return action.Outcome{Error: action.Errorf(action.Unavailable, "%s", errNotReady)}
	}
	defer set.release()
	m := set.member
	most := m.Agent.Limits.MaxPayloadBytes
	if len(inv.Parameters) > most {
		return action.Outcome{Error: action.Errorf(action.TooLarge, "the parameters have more than %d bytes", most)}
	}
	if access := d.access; access != nil {
		if err := access.Refuses(); err != nil {
			return action.Outcome{Error: action.Errorf(action.Unavailable, "no record of the execution could be kept, so it is refused: %s", err)}
		}
	}
	call := rpc.CallRecord{
		Start: time.Now(), Role: rpc.RoleCallee, Peer: m.Address, Mode: rpc.ModeSync, Status: rpc.StatusOK,
		CorrelationID: uuid.NewString(), TraceID: traceID(inv.TraceID), Payload: envelope.DigestPayload(inv.Parameters),
	}
	r := action.New(action.Options{Logger: d.log, Limiter: d.executions.limiter(""), MaxResultBytes: most, Record: func(_ context.Context, e action.Execution) {
		call.Capability, call.Attempts, call.Latency = e.Action, e.Attempts, e.Took
		if e.Attempts > 0 {
			call.ExecutionTime = e.Took
		}
		if e.Err != nil {
			call.Code = callCode(e.Err.Code)
			call.Status, call.DetectedBy = call.Code.Status(), m.Address
			if call.Code == rpc.CodeHandlerError {
				call.Failure = string(e.Err.Code)
			}
		}
	}})
	for _, entry := range m.Agent.Actions {
		if c, ok := m.Capabilities.Lookup(entry.ID); ok {
			// Loading has made sure of all that Register asks for.
			if err := r.Register(action.FromCapability(c), d.actionHandler(set, c, call.CorrelationID)); err != nil {
				return action.Outcome{Error: action.Errorf(action.Internal, "%s cannot be executed", c.Name).Because(err)}
			}
		}
	}
	out := r.Invoke(ctx, inv, action.Context{User: action.User{ID: operator, Permissions: granted(m.Agent)}, Workspace: m.Dir})
	call.Cost = out.CostEstimate
	d.stats.RecordCall(call)
	return out
}

// releaseIf releases a set that was acquired.
func (s *actionSet) releaseIf(acquired bool) {
	if acquired {
		s.release()
	}
}

// granted are the scopes of an agent as the permissions of a user. Without a list the agent
// has every scope.
func granted(a *fleet.AgentFile) []string {
	if a.Scopes == nil {
		return []string{"**"}
	}
	return patterns(a.Scopes)
}

// actionHandler returns what runs an action for the operator: the action that agentd has,
// or the skill that runs it for calls.
func (d *Daemon) actionHandler(set *actionSet, c *capability.Capability, correlation string) action.Handler {
	if b := set.builtIn[c.Skill]; b != nil {
		return b.opened.Run
	}
	handler := set.handlers[c.Skill]
	return func(ctx context.Context, params json.RawMessage, ac action.Context) (json.RawMessage, error) {
		self := set.member.Address
		inv := &rpc.Invocation{
			From: self, Proven: true, Capability: c.Name, Payload: params, MessageID: uuid.NewString(), CorrelationID: correlation, Hops: 1,
		}
		if id := traceID(ac.TraceID); id != "" {
			inv.Traceparent = traceparent(id)
		}
		if deadline, ok := ctx.Deadline(); ok {
			inv.Deadline = deadline
		}
		out, err := handler.Handle(rpc.WithInvocation(ctx, inv), inv)
		if e, public := errors.AsType[*rpc.SkillError](err); public && ctx.Err() == nil {
			code := action.Failed
			if e.Code == rpc.CodeBadSkillOutput {
				code = action.BadResult
			}
			failure := action.Errorf(code, "%s", e.Message).Because(e.Err)
			failure.Retryable = e.Retryable
			return nil, failure
		}
		return out, err
	}
}

// traceID returns a trace id as records have it, or "" for one of another form.
func traceID(text string) string {
	if id, err := uuid.Parse(text); err == nil { // also without its hyphens
		return hex.EncodeToString(id[:])
	}
	return ""
}

// traceparent returns the context of a trace whose only span so far is this execution.
func traceparent(id string) string {
	span := traceID(uuid.NewString())
	return "00-" + id + "-" + span[16:] + "-01"
}

// callCode is the code of a call that ends as an execution has.
func callCode(c action.Code) rpc.Code {
	switch c {
	case action.NotFound:
		return rpc.CodeNoCapability
	case action.PermissionDenied:
		return rpc.CodeDenied
	case action.InvalidArguments:
		return rpc.CodeSchemaViolation
	case action.RateLimitExceeded:
		return rpc.CodeRateLimited
	case action.Timeout:
		return rpc.CodeDeadlineExceeded
	case action.Canceled:
		return rpc.CodeCancelled
	case action.BadResult:
		return rpc.CodeBadSkillOutput
	}
	return rpc.CodeHandlerError
}
