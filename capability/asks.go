package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// An Ask is something that a capability may ask the client of a call for, a client of the
// Model Context Protocol: in place of its result, a call that asks has what it asks for, and
// is made again with the answers.
type Ask string

const (
	// AskElicitation asks the client's person to fill in a form.
	AskElicitation Ask = "elicitation"
	// AskRoots asks for the folders that the client works in.
	AskRoots Ask = "roots"
	// AskSampling asks the client's model.
	AskSampling Ask = "sampling"
)

// asks returns all kinds, sorted, with the method of the protocol for each and the schema of
// its parameters. What is left out of these could reach further than its person sees: other
// servers' context, tools, a page to open.
//
// These schemas are part of contracts, and under their digests: another word in one of them is
// another contract to every peer.
func asks() []askForm {
	return []askForm{
		{AskElicitation, "elicitation/create", `{"type":"object","properties":{"mode":{"const":"form"},"message":{"type":"string","minLength":1,"maxLength":4000},` +
			`"requestedSchema":{"type":"object","properties":{"type":{"const":"object"},"properties":{"type":"object","additionalProperties":{"type":"object"}}},"required":["type","properties"]}},` +
			`"required":["message","requestedSchema"],"additionalProperties":false}`},
		{AskRoots, "roots/list", `{"type":"object","additionalProperties":false}`},
		{AskSampling, "sampling/createMessage", `{"type":"object","properties":{"messages":{"type":"array","minItems":1,"items":{"type":"object","required":["role","content"]}},` +
			`"modelPreferences":{"type":"object"},"systemPrompt":{"type":"string"},"temperature":{"type":"number"},"maxTokens":{"type":"integer","minimum":1,"maximum":1000000},` +
			`"stopSequences":{"type":"array","items":{"type":"string"}}},"required":["messages","maxTokens"],"additionalProperties":false}`},
	}
}

type askForm struct {
	ask            Ask
	method, params string
}

const (
	// ClientMember is the member of a payload that has what the client of the call can be
	// asked for, and what it has answered. Only who makes the call writes it: no model, and
	// no client.
	ClientMember = "mcp"
	// OwnInputKey is a key that no request for input of a capability has: that of agentd's
	// own questions.
	OwnInputKey = "approval"
	// MaxInputRequests bounds what one answer asks for.
	MaxInputRequests = 8
	// MaxInputBytes bounds the length of such an answer.
	MaxInputBytes = 64 << 10
)

const inputRequired = "input_required"

// ClientInput is the member [ClientMember] of a payload.
type ClientInput struct {
	// CanAsk is what the client can be asked for, sorted.
	CanAsk []Ask `json:"canAsk"`
	// InputResponses are the client's answers, by the keys of what it was asked, in the form
	// of the protocol.
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
	// RequestState is that of the answer that asked.
	RequestState string `json:"requestState,omitempty"`
}

// InputRequired is an answer that asks for input.
type InputRequired struct {
	// InputRequests are what is asked for, by keys that the skill has chosen.
	InputRequests map[string]InputRequest `json:"inputRequests"`
	// RequestState is for the skill alone: it comes back with the answers.
	RequestState string `json:"requestState,omitempty"`
}

// An InputRequest is one thing that is asked for.
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Ask returns the kind of the request; "" for a method that is none.
func (r InputRequest) Ask() Ask {
	for _, f := range asks() {
		if f.method == r.Method {
			return f.ask
		}
	}
	return ""
}

// InputRequired returns what an answer asks for. ok is false for an answer that is a result.
// The answer has passed the contract.
func (c *Capability) InputRequired(answer json.RawMessage) (asked *InputRequired, ok bool) {
	if c == nil || len(c.Asks) == 0 {
		return nil, false
	}
	var members map[string]json.RawMessage // by their exact names, unlike fields of a struct
	if json.Unmarshal(answer, &members) != nil || string(bytes.TrimSpace(members["resultType"])) != `"`+inputRequired+`"` {
		return nil, false
	}
	asked = &InputRequired{}
	if json.Unmarshal(members["inputRequests"], &asked.InputRequests) != nil {
		return nil, false
	}
	_ = json.Unmarshal(members["requestState"], &asked.RequestState) // "" where it is absent
	return asked, true
}

// Unasked returns what an answer asks for although the payload of the call does not say that
// its client can be asked for it, sorted.
func (c *Capability) Unasked(payload, answer json.RawMessage) (kinds []Ask) {
	asked, ok := c.InputRequired(answer)
	if !ok {
		return nil
	}
	var members, client map[string]json.RawMessage
	var can []Ask
	_ = json.Unmarshal(payload, &members) // what cannot be read names nothing
	_ = json.Unmarshal(members[ClientMember], &client)
	_ = json.Unmarshal(client["canAsk"], &can)
	for _, r := range asked.InputRequests {
		if kind := r.Ask(); !slices.Contains(can, kind) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// HasClientInput reports whether a payload has the member [ClientMember].
func HasClientInput(payload json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(payload, &members) == nil && members[ClientMember] != nil
}

// WithClientInput returns the payload with the member [ClientMember], which it does not have.
// A payload that is no object is returned as it is: the contract refuses it.
func WithClientInput(payload json.RawMessage, in ClientInput) (json.RawMessage, error) {
	if in.CanAsk == nil {
		in.CanAsk = []Ask{}
	}
	text, err := json.Marshal(in)
	at := ijson.SkipSpace(payload, 0)
	if err != nil || at == len(payload) || payload[at] != '{' {
		return payload, err
	}
	return addMember(payload[at:], ClientMember, text), nil
}

// addMember adds a member to an object, in front.
func addMember(object []byte, name string, value []byte) []byte {
	out := append(append(ijson.AppendQuoted([]byte{'{'}, name), ':'), value...)
	rest := bytes.TrimLeft(object[1:], " \t\r\n")
	if !bytes.HasPrefix(rest, []byte("}")) {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// clientSchema is the schema of the member [ClientMember].
func clientSchema() string {
	kinds := make([]string, 0, 3)
	for _, f := range asks() {
		kinds = append(kinds, `"`+string(f.ask)+`"`)
	}
	return `{"type":"object","description":"What the MCP client of the call can be asked for, and what it has answered.","properties":{` +
		`"canAsk":{"type":"array","items":{"enum":[` + strings.Join(kinds, ",") + `]},"uniqueItems":true},` +
		fmt.Sprintf(`"inputResponses":{"type":"object","maxProperties":%d,"additionalProperties":{"type":"object"}},`, MaxInputRequests) +
		fmt.Sprintf(`"requestState":{"type":"string","maxLength":%d}},`, MaxInputBytes) +
		`"required":["canAsk"],"additionalProperties":false}`
}

// requestSchema is the schema of answers that ask for some kinds of input.
func requestSchema(kinds []Ask) string {
	var forms []string
	for _, f := range asks() {
		if !slices.Contains(kinds, f.ask) {
			continue
		}
		required := `"method","params"`
		if f.ask == AskRoots {
			required = `"method"`
		}
		forms = append(forms, `{"type":"object","properties":{"method":{"const":"`+f.method+`"},"params":`+f.params+`},"required":[`+required+`],"additionalProperties":false}`)
	}
	return `{"type":"object","properties":{"resultType":{"const":"` + inputRequired + `"},"inputRequests":{"type":"object",` +
		fmt.Sprintf(`"minProperties":1,"maxProperties":%d,`, MaxInputRequests) +
		`"propertyNames":{"pattern":"^[A-Za-z0-9_.-]{1,64}$","not":{"const":"` + OwnInputKey + `"}},"additionalProperties":{"anyOf":[` + strings.Join(forms, ",") + `]}},` +
		fmt.Sprintf(`"requestState":{"type":"string","maxLength":%d}},`, MaxInputBytes/2) +
		`"required":["resultType","inputRequests"],"additionalProperties":false}`
}

// decodeAsks reads asks, sorted.
func decodeAsks(v strictyaml.Value) (kinds []Ask) {
	if !v.Present() {
		return nil
	}
	var known []string
	for _, f := range asks() {
		known = append(known, string(f.ask))
	}
	for _, item := range v.List() {
		kind := Ask(item.Enum(known...))
		if slices.Contains(kinds, kind) {
			item.Fault(fmt.Sprintf("%q is listed twice", kind), "")
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// addAsks makes the contracts of a capability that asks its client those that hold for its
// calls: with the client's answers in a payload, and what is asked for in place of a result.
// both says that the file has both schemas.
func (d *decoder) addAsks(c *Capability, at strictyaml.Value, both bool) {
	if len(c.Asks) == 0 {
		return
	}
	fault := func(format string, args ...any) {
		at.Fault(fmt.Sprintf("capability %q asks its client: ", c.Name)+fmt.Sprintf(format, args...), "")
	}
	switch {
	case c.Result != ResultMCP || c.SchemaProfile != ProfileFull:
		fault("that takes result: mcp and schemaProfile: full")
		return
	case c.Delivery == DeliveryDurable:
		fault("nobody can be asked while a queue keeps the call, so delivery must not be durable")
		return
	case !both:
		fault("that takes an inputSchema and an outputSchema")
		return
	case c.Input == nil || c.Output == nil:
		return // its own faults are recorded
	}
	input, err := withClientMember(c.Input.Source)
	if err != nil {
		fault("%v", err)
		return
	}
	d.extend(c.Input, c, input, "", fault)
	dialect, result := ownResource(c.Output.Source, "urn:agentd:result")
	output := []byte(`{"$schema":`)
	output = append(append(output, dialect...), `,"anyOf":[`...)
	output = append(append(append(output, result...), ','), requestSchema(c.Asks)+`]}`...)
	d.extend(c.Output, c, output, "/anyOf/0", fault)
	if c.Input.Schema != nil && !takesClientMember(c) {
		fault("no payload that the inputSchema accepts can have the member %q besides its own", ClientMember)
	}
}

// extend replaces a contract's schema. The one that the file declares has passed all checks.
func (d *decoder) extend(contract *Contract, of *Capability, source []byte, below string, fault func(string, ...any)) {
	contract.declared, contract.below = contract.Source, below
	contract.Source = source
	if contract.Schema == nil {
		return
	}
	compiled, err := schema.CompileWith(source, of.CompileOptions())
	if err != nil {
		fault("its schemas cannot be extended for that: %v", err)
		return
	}
	contract.declaredSchema, contract.Schema, contract.Validator = contract.Schema, compiled, compiled
}

// withClientMember declares the member [ClientMember] in the schema of an object.
func withClientMember(source []byte) ([]byte, error) {
	out, found := []byte{'{'}, false
	var root struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(source, &root) != nil || root.Type != "object" {
		return nil, errors.New("that takes an inputSchema with type: object")
	}
	if root.Properties[ClientMember] != nil {
		return nil, fmt.Errorf("the member %q of the payload is that of the client, and cannot be declared", ClientMember)
	}
	for _, m := range members(source) {
		if m.name == "properties" {
			m.value, found = addMember(bytes.TrimSpace(m.value), ClientMember, []byte(clientSchema())), true
		}
		out = append(append(append(ijson.AppendQuoted(out, m.name), ':'), m.value...), ',')
	}
	if !found {
		out = append(append(out, `"properties":{"`+ClientMember+`":`...), clientSchema()+`},`...)
	}
	return append(bytes.TrimSuffix(out, []byte{','}), '}'), nil
}

// takesClientMember reports whether another rule of the inputSchema leaves room for the
// member [ClientMember]. It says no only where that is certain.
func takesClientMember(c *Capability) bool {
	dialect, inner := ownResource(c.Input.Source, "urn:agentd:payload")
	both := append(append([]byte(`{"$schema":`), dialect...), `,"allOf":[`...)
	both = append(append(both, inner...), `,{"type":"object","required":["`+ClientMember+`"]}]}`...)
	compiled, err := schema.CompileWith(both, c.CompileOptions())
	if err != nil {
		return true
	}
	_, err = contain.Sample(compiled)
	return !errors.Is(err, contain.ErrUnsatisfiable)
}
