package peertool

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema"
)

// The members that stand for a payload or an answer that is no object.
const (
	payloadMember  = "payload"
	responseMember = "response"
)

// A Shape is how the protocol of tools carries a payload. Arguments and results are
// objects there, and their schemas say so. A payload of another type is the one member of
// such an object.
type Shape struct {
	// Schema is that of the object. It is nil where nothing is known of it.
	Schema json.RawMessage
	member string // "" for a payload that is the object itself
	// reserved is set where the payload has a member that no model may write.
	reserved bool
}

// Input is the shape of the arguments of a capability.
func Input(c *capability.Capability) Shape {
	s := shapeOf(c.Input, payloadMember, c.CompileOptions())
	s.reserved = len(c.Asks) > 0
	return s
}

// Output is the shape of a capability's results. Loose JSON has no schema that would say so.
func Output(c *capability.Capability) Shape {
	if c.Output == nil {
		return Shape{member: responseMember}
	}
	return shapeOf(c.Output, responseMember, c.CompileOptions())
}

// shapeOf is the shape for a contract, or for loose JSON. opts are how the contract is read.
func shapeOf(c *capability.Contract, member string, opts schema.CompileOptions) Shape {
	if c == nil {
		return Shape{Schema: wrapper(member, json.RawMessage("{}"), nil), member: member}
	}
	var root map[string]json.RawMessage
	source := c.Declared()
	if json.Unmarshal(source, &root) != nil {
		return Shape{Schema: wrapper(member, json.RawMessage("{}"), nil), member: member}
	}
	if bytes.Equal(bytes.TrimSpace(root["type"]), []byte(`"object"`)) {
		return Shape{Schema: spelledOut(source)}
	}
	if opts.Profile == schema.ProfileFull && (bytes.Contains(source, []byte(`$ref"`)) || bytes.Contains(source, []byte(`Ref"`))) {
		// They may lead anywhere in the document, and would lead elsewhere in another.
		return Shape{Schema: wrapper(member, json.RawMessage("{}"), nil), member: member}
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
	if refersToRoot(source) {
		wrapped = wrapper(member, json.RawMessage("{}"), nil)
	} else if _, err := schema.CompileWith(wrapped, opts); err != nil {
		wrapped = wrapper(member, json.RawMessage("{}"), nil)
	}
	return Shape{Schema: spelledOut(wrapped), member: member}
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

// Unwrap returns the payload that arguments stand for, and what is wrong with arguments
// that stand for none: of their own members alone, since the payload is judged by the
// call. Arguments that are absent are an empty object.
func (s Shape) Unwrap(args json.RawMessage) (json.RawMessage, []schema.Violation) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if s.reserved && capability.HasClientInput(args) {
		return nil, Reserved("")
	}
	if s.member == "" {
		return args, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil || object == nil {
		return nil, []schema.Violation{{Message: "expected type object", Keyword: schema.KeywordType}}
	}
	var wrong []schema.Violation
	payload, ok := object[s.member]
	if !ok {
		wrong = append(wrong, schema.Violation{Path: "/" + s.member, Message: "is required and missing", Keyword: schema.KeywordRequired})
	}
	delete(object, s.member)
	for name := range object {
		wrong = append(wrong, schema.Violation{Path: "/" + pointerToken(name), Message: "is not allowed: the only member is " + s.member, Keyword: schema.KeywordAdditionalProperties})
	}
	if wrong != nil {
		slices.SortFunc(wrong, func(a, b schema.Violation) int { return strings.Compare(a.Path, b.Path) })
		return nil, wrong
	}
	return payload, nil
}

// Reserved is what is wrong with a payload, at a place, that has the member of its client's
// answers: a model that could write it would answer in its person's place.
func Reserved(at string) []schema.Violation {
	return []schema.Violation{{Path: at + "/" + capability.ClientMember, Message: "is not allowed: answers of a person are not written as arguments", Keyword: schema.KeywordAdditionalProperties}}
}

// pointerToken bounds and escapes a name that a client has chosen.
func pointerToken(name string) string {
	const most = 128
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Wrap returns the result that a response is.
func (s Shape) Wrap(response json.RawMessage) (json.RawMessage, error) {
	if s.member == "" {
		return response, nil
	}
	return json.Marshal(map[string]json.RawMessage{s.member: response})
}

// Locate returns violations of a payload at the places where the arguments have them.
func (s Shape) Locate(violations []schema.Violation) []schema.Violation {
	if s.member == "" || violations == nil {
		return violations
	}
	moved := slices.Clone(violations)
	for i := range moved {
		moved[i].Path = "/" + s.member + moved[i].Path
	}
	return moved
}
