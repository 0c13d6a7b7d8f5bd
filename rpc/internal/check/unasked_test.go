package check

import (
	"encoding/json"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
)

// Whoever calls without a client that can be asked gets an error by name, and what it takes.
func TestUnaskedIsAnError(t *testing.T) {
	c := &capability.Capability{Name: "book", Asks: []capability.Ask{capability.AskElicitation}}
	answer := json.RawMessage(`{"resultType":"input_required","inputRequests":{"e":{"method":"elicitation/create","params":{}}}}`)
	err := Unasked(c, json.RawMessage(`{}`), answer)
	if err == nil || err.Code != rpc.CodeInputRequired || err.Retryable || string(err.Details) != `{"asks":["elicitation"]}` {
		t.Errorf("%+v", err)
	}
	if err := Unasked(c, json.RawMessage(`{"mcp":{"canAsk":["elicitation"]}}`), answer); err != nil {
		t.Error(err)
	}
	if err := Unasked(&capability.Capability{Name: "other"}, nil, answer); err != nil {
		t.Errorf("a capability that does not ask: %v", err)
	}
}
