package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// A ToolSet is one capability that an agent may use, with its tools in full.
type ToolSet struct {
	// Key is its name in agent.yaml.
	Key string `json:"key"`
	// Skipped says why the agent has no tool of it; "" where it has.
	Skipped string `json:"skipped,omitempty"`
	Tools   []Tool `json:"tools"`
}

// A Tool is what whoever calls a tool is told of it.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Refused says why it cannot be called at the moment.
	Refused string `json:"refused,omitempty"`
}

// tools handles GET /v1/agent/tools.
func (a Agent) tools(w http.ResponseWriter, _ *http.Request) {
	all := []ToolSet{}
	if a.Tools != nil {
		var err error
		if all, err = a.Tools(); err != nil {
			writeFault(w, http.StatusServiceUnavailable, codeNotReady, err.Error())
			return
		}
	}
	writeJSON(w, http.StatusOK, all)
}

// Tools returns what the agent may use. Errors are those of [Client.Status].
func (c *Client) Tools(ctx context.Context) ([]ToolSet, error) {
	data, err := c.do(ctx, http.MethodGet, "/v1/agent/tools", nil)
	if err != nil {
		return nil, err
	}
	var all []ToolSet
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return all, nil
}
