package typed

import "github.com/agentd/agentd/internal/ijson"

// Arguments decodes the payload of a call with decode. It is the rule of
// schema.Schema.Arguments on the side of Go types: a payload that is null or absent
// is null to a type that takes it, and {} to any other. agentd has checked it so,
// but hands over what the caller has sent.
func Arguments(payload []byte, decode func(payload []byte) error) error {
	if !ijson.IsAbsent(payload) {
		return decode(payload)
	}
	if decode([]byte("null")) == nil {
		return nil
	}
	return decode([]byte("{}"))
}

// UnmarshalArguments decodes the payload of a call into what v points to, strictly;
// see [Arguments] and [Unmarshal].
func UnmarshalArguments(payload []byte, v any) error {
	return Arguments(payload, func(data []byte) error { return Unmarshal(data, v) })
}
