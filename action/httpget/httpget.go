package httpget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
)

// Definition is the action: its parameters, what it returns and what it needs.
const Definition = `{
  "id": "http-get",
  "name": "HTTP GET",
  "description": "Perform HTTP GET request",
  "parameters": {
    "type": "object",
    "properties": {
      "url": {"type": "string", "format": "uri", "maxLength": 8192, "description": "http or https, to a host on this agent's list"},
      "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "left behind when an answer redirects to another host"},
      "timeout": {"type": "number", "exclusiveMinimum": 0, "default": 30000, "description": "milliseconds"}
    },
    "required": ["url"],
    "additionalProperties": false
  },
  "returns": ` + netguard.ResultSchema + `,
  "permissions": ["http:read"],
  "idempotent": true
}`

// A Config is what the agent's files say about the action.
type Config struct {
	netguard.Config
	// Secret resolves a reference to a secret.
	Secret func(ref string) (string, error) `json:"-"`
}

// A Handler runs the action. It is safe for concurrent use.
type Handler struct{ client *netguard.Client }

// New returns a handler. It is an error if no host is listed, or a reference leads nowhere.
func New(c Config) (*Handler, error) {
	policy, err := c.Policy(c.Secret)
	if err != nil {
		return nil, fmt.Errorf("http-get: %w", err)
	}
	if len(policy.ContentTypes) == 0 {
		policy.ContentTypes = netguard.TextTypes()
	}
	client, err := netguard.New(policy)
	if err != nil {
		return nil, fmt.Errorf("http-get: %w", err)
	}
	return &Handler{client}, nil
}

// Close closes the connections that are kept for later requests.
func (h *Handler) Close() error {
	h.client.Close()
	return nil
}

// Execute sends the request. An answer with any status is a result. Errors are
// [failure.Error].
func (h *Handler) Execute(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Timeout *float64          `json:"timeout"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the parameters are not those of http-get").Because(err)
	}
	request := netguard.Request{Method: http.MethodGet, URL: p.URL, Header: p.Headers, Timeout: netguard.DefaultTimeout}
	if p.Timeout != nil {
		if !(*p.Timeout > 0) {
			return nil, failure.Errorf(failure.InvalidArgument, "timeout is a number of milliseconds above 0")
		}
		// The operator's limit stands anyway; a day keeps the product in range.
		ms := min(*p.Timeout, (24*time.Hour).Seconds()*1000)
		request.Timeout = max(time.Duration(ms*float64(time.Millisecond)), 1)
	}
	resp, err := h.client.Do(ctx, request)
	if err != nil {
		return nil, err
	}
	return json.Marshal(resp.Result())
}
