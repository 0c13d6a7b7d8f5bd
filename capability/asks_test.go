package capability_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

const (
	closedInput = `inputSchema: {type: object, properties: {room: {$ref: "#/$defs/r"}}, $defs: {r: {type: string}}, required: [room], additionalProperties: false}`
	mcpOutput   = `outputSchema: {type: object, properties: {content: {type: array, items: {type: object, required: [type, text], properties: {type: {const: text}, text: {$ref: "#/$defs/t"}}}}}, $defs: {t: {type: string}}, required: [content], additionalProperties: false}`
	askingKeys  = `schemaProfile: full, result: mcp, ` + closedInput + `, ` + mcpOutput
)

// What travels is judged with the client's answers and with what it is asked for; what a model
// is told is what the file says.
func TestAsksExtendContracts(t *testing.T) {
	doc := fullCapability(t, askingKeys+`, asks: [sampling, elicitation]`)
	c := doc.Capabilities[0]
	if !slices.Equal(c.Asks, []capability.Ask{capability.AskElicitation, capability.AskSampling}) {
		t.Errorf("asks %v", c.Asks)
	}
	for payload, want := range map[string]schema.Verdict{
		`{"room":"A"}`:                     schema.Valid,
		`{"room":7}`:                       schema.Invalid,
		`{"room":"A","mcp":{"canAsk":[]}}`: schema.Valid,
		`{"room":"A","mcp":{"canAsk":["roots"],"inputResponses":{"a":{}}}}`:     schema.Valid,
		`{"room":"A","mcp":{"canAsk":["url"]}}`:                                 schema.Invalid,
		`{"room":"A","mcp":{}}`:                                                 schema.Invalid,
		`{"room":"A","mcp":{"canAsk":[],"by":"ann"}}`:                           schema.Invalid,
		`{"mcp":{"canAsk":[]}}`:                                                 schema.Invalid,
		`{"room":"A","mcp":{"canAsk":[],"requestState":"` + long(1<<17) + `"}}`: schema.Invalid,
	} {
		if got := c.Input.Check([]byte(payload)).Verdict; got != want {
			t.Errorf("%.80s is %s", payload, got)
		}
	}
	const form = `{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	asks := func(requests string) string {
		return `{"resultType":"input_required","inputRequests":` + requests + `}`
	}
	for answer, want := range map[string]schema.Verdict{
		`{"content":[{"type":"text","text":"hi"}]}`: schema.Valid,
		`{"content":[{"type":"text","text":7}]}`:    schema.Invalid,
		asks(`{"who":` + form + `}`):                schema.Valid,
		asks(`{"q":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{}}],"maxTokens":9}}}`):                               schema.Valid,
		asks(`{"q":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{}}],"maxTokens":9,"includeContext":"allServers"}}}`): schema.Invalid,
		asks(`{}`):                            schema.Invalid,
		asks(`{"approval":` + form + `}`):     schema.Invalid, // agentd's own
		asks(`{"a b":` + form + `}`):          schema.Invalid,
		asks(`{"r":{"method":"roots/list"}}`): schema.Invalid, // not declared
		asks(`{"u":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x","elicitationId":"1"}}}`): schema.Invalid,
		`{"resultType":"input_required","content":[]}`: schema.Invalid,
	} {
		if got := c.Output.Check([]byte(answer)).Verdict; got != want {
			t.Errorf("%.120s is %s", answer, got)
		}
	}
	if declared := string(c.Input.Declared()) + string(c.Output.Declared()); strings.Contains(declared, "canAsk") || strings.Contains(declared, "input_required") {
		t.Errorf("the file declares %s", declared)
	}
	plain := fullCapability(t, askingKeys).Capabilities[0]
	if plain.Digest == c.Digest || string(plain.Input.Declared()) != string(plain.Input.Source) {
		t.Error("the contract is that of a capability that does not ask")
	}
	published := doc.Published().ToolSchemas["x"]
	if digest, err := published.ContractDigest("x"); err != nil || digest != c.Digest || len(published.Asks) != 2 {
		t.Errorf("published %s, %v, %v, not %s", digest, err, published.Asks, c.Digest)
	}
}

func long(n int) string { return strings.Repeat("x", n) }

// A capability that cannot ask is refused when its file is loaded.
func TestAsksThatCannotWork(t *testing.T) {
	for keys, says := range map[string]string{
		askingKeys + `, asks: [elicitation], delivery: durable`:                                                                            "durable",
		askingKeys + `, asks: [telepathy]`:                                                                                                 "elicitation",
		askingKeys + `, asks: [roots, roots]`:                                                                                              "twice",
		closedInput + `, asks: [roots]`:                                                                                                    "result: mcp",
		`schemaProfile: full, result: mcp, ` + mcpOutput + `, asks: [roots]`:                                                               "inputSchema",
		`schemaProfile: full, result: mcp, inputSchema: {type: array}, ` + mcpOutput + `, asks: [roots]`:                                   "type: object",
		`schemaProfile: full, result: mcp, inputSchema: {type: object, properties: {mcp: {}}}, ` + mcpOutput + `, asks: [roots]`:           `"mcp"`,
		`schemaProfile: full, result: mcp, inputSchema: {type: object, propertyNames: {const: room}}, ` + mcpOutput + `, asks: [roots]`:    `"mcp"`,
		`schemaProfile: full, result: mcp, inputSchema: {type: object, required: [a], maxProperties: 1}, ` + mcpOutput + `, asks: [roots]`: `"mcp"`,
	} {
		_, err := capabilityWith(keys)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", keys, err)
		}
	}
	// Faults of the file's own schemas keep their place.
	_, err := capabilityWith(`schemaProfile: full, result: mcp, asks: [roots], inputSchema: {type: object, properties: {a: {minimum: no}}}, ` + mcpOutput)
	wantFault(t, err, "/inputSchema/properties/a/minimum", "minimum")
}

// Nobody is asked for what the payload does not offer, however its members are spelt.
func TestUnasked(t *testing.T) {
	c := fullCapability(t, askingKeys+`, asks: [roots, elicitation]`).Capabilities[0]
	const asks = `{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"},"e":{"method":"elicitation/create","params":{}}}}`
	for payload, want := range map[string]string{
		`{}`:                           "[elicitation roots]",
		`{"mcp":{"canAsk":["roots"]}}`: "[elicitation]",
		`{"MCP":{"canAsk":["roots","elicitation"]}}`: "[elicitation roots]",
		`{"mcp":{"canask":["roots","elicitation"]}}`: "[elicitation roots]",
		`{"mcp":{"canAsk":["roots","elicitation"]}}`: "[]",
		`null`: "[elicitation roots]",
	} {
		if got, _ := json.Marshal(c.Unasked(json.RawMessage(payload), json.RawMessage(asks))); strings.NewReplacer(`"`, "", ",", " ", "null", "[]").Replace(string(got)) != want {
			t.Errorf("%s: %s, not %s", payload, got, want)
		}
	}
	if got := c.Unasked(json.RawMessage(`{}`), json.RawMessage(`{"content":[]}`)); got != nil {
		t.Errorf("a result asks for %v", got)
	}
	if !capability.HasClientInput(json.RawMessage(`{"\u006dcp":1}`)) || capability.HasClientInput(json.RawMessage(`{"Mcp":1}`)) || capability.HasClientInput(json.RawMessage(`[7]`)) {
		t.Error("the member is not found by its name")
	}
}

func TestWithClientInput(t *testing.T) {
	in := capability.ClientInput{CanAsk: []capability.Ask{capability.AskRoots}, RequestState: "s"}
	for payload, want := range map[string]string{
		` { "room" : 9007199254740993 } `: `{"mcp":{"canAsk":["roots"],"requestState":"s"},"room" : 9007199254740993 } `,
		`{ }`:                             `{"mcp":{"canAsk":["roots"],"requestState":"s"}}`,
		`[1]`:                             `[1]`,
	} {
		if got, err := capability.WithClientInput(json.RawMessage(payload), in); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v", payload, got, err)
		}
	}
	if got, _ := capability.WithClientInput(json.RawMessage(`{}`), capability.ClientInput{}); string(got) != `{"mcp":{"canAsk":[]}}` {
		t.Errorf("got %s", got)
	}
}
