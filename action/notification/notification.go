package notification

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/notifier"
)

// Definition is the action: its parameters, what it returns and what it needs.
const Definition = `{
  "id": "send-notification",
  "name": "Send Notification",
  "description": "Send a short message to the people who are notified by this agent",
  "parameters": {
    "type": "object",
    "properties": {
      "message": {"type": "string", "minLength": 1, "maxLength": 4000},
      "channel": {"type": "string", "enum": ["email", "sms", "push", "webhook"], "description": "one that this agent is configured with; the agent's default if left out"}
    },
    "required": ["message"],
    "additionalProperties": false
  },
  "returns": ` + notifier.ReceiptSchema + `,
  "permissions": ["notify:send"]
}`

// ConfigSchema is the JSON Schema of a [Config].
const ConfigSchema = notifier.ConfigSchema

// A Config is what the agent's files say about the action.
type Config struct {
	notifier.Config
	// Secret resolves a reference to a secret.
	Secret func(ref string) (string, error) `json:"-"`
}

// A Handler runs the action. It is safe for concurrent use.
type Handler struct{ notifier *notifier.Notifier }

// New returns a handler. It is an error if there is no channel, one of them cannot work
// as it is configured, or a reference leads nowhere.
func New(c Config) (*Handler, error) {
	n, err := notifier.New(c.Config, c.Secret)
	if err != nil {
		return nil, fmt.Errorf("send-notification: %w", err)
	}
	return &Handler{n}, nil
}

// Close closes the connections that are kept for later messages.
func (h *Handler) Close() error {
	h.notifier.Close()
	return nil
}

// Execute sends the message. Errors are [failure.Error].
func (h *Handler) Execute(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Message string `json:"message"`
		Channel string `json:"channel"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the parameters are not those of send-notification").Because(err)
	}
	receipt, err := h.notifier.Send(ctx, notifier.Message{Channel: p.Channel, Text: p.Message})
	if err != nil {
		return nil, err
	}
	return json.Marshal(receipt)
}
