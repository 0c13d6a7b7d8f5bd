package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mailer"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/hourly"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

// DefaultPerHour is how many mails an agent may send in an hour, if its file does not say.
const DefaultPerHour = 10

// sendMail is the key of the tool.
const sendMail = "send_mail"

// A Resolver makes the capability mail.
type Resolver struct{}

// A Config is what the agent's file says about the capability.
type Config struct {
	mailer.Config
	// PerHour bounds the mails of an hour. One to three recipients counts as three.
	// DefaultPerHour if 0.
	PerHour int `json:"perHour,omitempty"`
}

// Key implements [registry.Resolver].
func (Resolver) Key() string { return "mail" }

// Tools implements [registry.Resolver].
func (Resolver) Tools() []registry.Tool {
	return []registry.Tool{
		{Key: sendMail, Name: "Send mail", Description: "Sends a mail, as plain text or HTML, to recipients that this agent may write to: to all of them, or to none."},
	}
}

// ConfigSchema implements [registry.Resolver].
func (Resolver) ConfigSchema() json.RawMessage {
	return json.RawMessage(`{
  "type": "object",
  "properties": {
    "perHour": {"type": "integer", "minimum": 1, "maximum": 10000},` + mailer.ConfigProperties + `
  },
  "required": ["server", "from"],
  "additionalProperties": false
}`)
}

// input is the schema of the tool's arguments, for so many recipients.
const input = `{
  "type": "object",
  "properties": {
    "to": {"type": "array", "items": {"type": "string", "format": "email", "maxLength": 254}, "minItems": 1, "maxItems": %d, "description": "addresses without names"},
    "subject": {"type": "string", "maxLength": 998, "description": "one line"},
    "body": {"type": "string"},
    "html": {"type": "boolean", "default": false, "description": "the body is HTML, and not plain text"}
  },
  "required": ["to", "subject", "body"],
  "additionalProperties": false
}`

// Resolve implements [registry.Resolver].
func (r Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	var config Config
	if err := json.Unmarshal(c.JSON, &config); err != nil {
		return nil, err
	}
	m, err := mailer.New(config.Config, toolerror.Secret(ctx))
	if err != nil {
		return nil, &registry.ConfigError{Message: err.Error()}
	}
	if config.PerHour == 0 {
		config.PerHour = DefaultPerHour
	}
	limit, err := hourly.Open(ctx, r.Key(), config.PerHour, "mails", nil)
	if err != nil {
		return nil, err
	}
	s := registry.NewServer(r.Key(), "1", c.Tools)
	s.OnClose(limit.Close)
	tool := r.Tools()[0]
	err = s.Add(registry.ToolSpec{
		Key: tool.Key, Title: tool.Name, Description: tool.Description, OpenWorld: true,
		Input: json.RawMessage(fmt.Sprintf(input, m.MaxRecipients())), Output: json.RawMessage(mailer.ReceiptSchema),
	}, toolerror.Handler(ctx.Logger, tool.Key, send(m, limit)))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// send is the handler of the tool.
func send(m *mailer.Mailer, limit *hourly.Limit) registry.Handler {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		var a struct {
			To      []string `json:"to"`
			Subject string   `json:"subject"`
			Body    string   `json:"body"`
			HTML    bool     `json:"html"`
		}
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, failure.Errorf(failure.InvalidArgument, "the arguments are not those of the tool").Because(err)
		}
		message := mailer.Message{To: a.To, Subject: a.Subject, Body: a.Body, HTML: a.HTML}
		// What would be refused anyway does not count.
		if err := m.Check(message); err != nil {
			return nil, err
		}
		if err := limit.Take(ctx, len(a.To)); err != nil {
			return nil, err
		}
		receipt, err := m.Send(ctx, message)
		if err != nil {
			return nil, err
		}
		return json.Marshal(receipt)
	}
}
