package peers

import (
	"bytes"
	"encoding/json"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// A shape is how the protocol of tools carries a payload. Arguments and results are
// objects there, and their schemas say so. A payload of another type is the one member of
// such an object.
type shape struct {
	schema json.RawMessage
	member string // "" for a payload that is the object itself
}

// shapeOf is the shape for a contract, or for loose JSON. opts are how the contract is
// read.
func shapeOf(c *capability.Contract, member string, opts schema.CompileOptions) shape {
	if c == nil {
		return shape{wrapper(member, json.RawMessage("{}"), nil), member}
	}
	var root map[string]json.RawMessage
	if json.Unmarshal(c.Source, &root) != nil {
		return shape{wrapper(member, json.RawMessage("{}"), nil), member}
	}
	if bytes.Equal(bytes.TrimSpace(root["type"]), []byte(`"object"`)) {
		return shape{schema: c.Source}
	}
	if opts.Profile == schema.ProfileFull && (bytes.Contains(c.Source, []byte(`$ref"`)) || bytes.Contains(c.Source, []byte(`Ref"`))) {
		// They may lead anywhere in the document, and would lead elsewhere in another.
		return shape{wrapper(member, json.RawMessage("{}"), nil), member}
	}
	// References lead to the definitions of the root, which therefore move up. One to the
	// root itself would mean the wrapper: the call checks such a payload, and not the tool.
	definitions := root["definitions"]
	delete(root, "definitions")
	delete(root, "$schema") // which only a root has
	inner, err := json.Marshal(root)
	if err != nil {
		inner = json.RawMessage("{}")
	}
	wrapped := wrapper(member, inner, definitions)
	if refersToRoot(c.Source) {
		wrapped = wrapper(member, json.RawMessage("{}"), nil)
	} else if _, err := schema.CompileWith(wrapped, opts); err != nil {
		wrapped = wrapper(member, json.RawMessage("{}"), nil)
	}
	return shape{wrapped, member}
}

// refersToRoot may say yes too often: a string that looks like such a reference costs
// the tool its precise schema, and no check.
func refersToRoot(source json.RawMessage) bool {
	var compact bytes.Buffer
	return json.Compact(&compact, source) != nil || bytes.Contains(compact.Bytes(), []byte(`"$ref":"#"`))
}

func wrapper(member string, inner, definitions json.RawMessage) json.RawMessage {
	s := append([]byte(`{"type":"object","properties":{`), ijson.AppendQuoted(nil, member)...)
	s = append(append(append(s, ':'), inner...), `},"required":[`...)
	s = append(ijson.AppendQuoted(s, member), `],"additionalProperties":false`...)
	if definitions != nil {
		s = append(append(s, `,"definitions":`...), definitions...)
	}
	return append(s, '}')
}

// unwrap returns the payload that arguments stand for.
func (s shape) unwrap(args json.RawMessage) (json.RawMessage, error) {
	if s.member == "" {
		return args, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil {
		return nil, err
	}
	return object[s.member], nil
}

// wrap returns the result that a response is.
func (s shape) wrap(response json.RawMessage) (json.RawMessage, error) {
	if s.member == "" {
		return response, nil
	}
	return json.Marshal(map[string]json.RawMessage{s.member: response})
}

// translate turns the failure of a call into that of a tool. Messages of calls are made to
// be shown: they have no payload and none of the callee's internals.
func (s shape) translate(e *rpc.Error) error {
	out := &registry.Error{Code: code(e), Message: e.Message, Retryable: e.Retryable}
	if e.Code == rpc.CodeSchemaViolation && e.Side != rpc.SideResponse {
		out.Violations = e.Violations
		if s.member != "" { // where the caller's arguments have it
			out.Violations = make([]schema.Violation, len(e.Violations))
			for i, v := range e.Violations {
				v.Path = "/" + s.member + v.Path
				out.Violations[i] = v
			}
		}
		out.Message = registry.ViolationText("the payload does not fit the contract of "+string(e.DetectedBy), out.Violations)
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
	case rpc.CodeHandlerError, rpc.CodeBadSkillOutput, rpc.CodeInternal, rpc.CodeRemote, rpc.CodeOutcomeUnknown:
		return registry.Failed
	default: // drift, a circuit, a full queue: what stands in the way may go
		return registry.Unavailable
	}
}
