package emailsend

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mailer"
)

// Definition is the action: its parameters, what it returns and what it needs.
const Definition = `{
  "id": "email-send",
  "name": "Send Email",
  "description": "Send email message",
  "parameters": {
    "type": "object",
    "properties": {
      "to": {"type": "string", "format": "email", "maxLength": 254, "description": "one address, without a name"},
      "subject": {"type": "string", "maxLength": 998},
      "body": {"type": "string"},
      "html": {"type": "boolean", "default": false, "description": "the body is HTML, and not plain text"}
    },
    "required": ["to", "subject", "body"],
    "additionalProperties": false
  },
  "returns": ` + mailer.ReceiptSchema + `,
  "permissions": ["email:send"],
  "rateLimit": {"requests": 10, "window": "1h"}
}`

// ConfigSchema is the JSON Schema of a [Config].
const ConfigSchema = `{
  "type": "object",
  "properties": {` + mailer.ConfigProperties + `
  },
  "required": ["server", "from"],
  "additionalProperties": false
}`

// A Config is what the agent's files say about the action.
type Config struct {
	mailer.Config
	// Secret resolves a reference to a secret.
	Secret func(ref string) (string, error) `json:"-"`
}

// A Handler runs the action. It is safe for concurrent use.
type Handler struct{ mailer *mailer.Mailer }

// New returns a handler. It is an error if mail or a password would go without TLS, or a
// reference leads nowhere.
func New(c Config) (*Handler, error) {
	m, err := mailer.New(c.Config, c.Secret)
	if err != nil {
		return nil, fmt.Errorf("email-send: %w", err)
	}
	return &Handler{m}, nil
}

// Execute sends the mail. Errors are [failure.Error].
func (h *Handler) Execute(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		To      string `json:"to"`
		Subject string `json:"subject"`
		Body    string `json:"body"`
		HTML    bool   `json:"html"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the parameters are not those of email-send").Because(err)
	}
	receipt, err := h.mailer.Send(ctx, mailer.Message{To: []string{p.To}, Subject: p.Subject, Body: p.Body, HTML: p.HTML})
	if err != nil {
		return nil, err
	}
	return json.Marshal(receipt)
}
