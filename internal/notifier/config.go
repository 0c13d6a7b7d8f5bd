package notifier

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/internal/mailer"
	"github.com/agentd/agentd/internal/netguard"
)

// The channels. SMS and push messages go to a webhook of the service that sends them.
const (
	Email   = "email"
	Webhook = "webhook"
	SMS     = "sms"
	Push    = "push"
)

// A Config is what the agent's files say about notifications: the channels that there
// are. Secrets are references.
type Config struct {
	Email   *EmailConfig   `json:"email,omitempty"`
	Webhook *WebhookConfig `json:"webhook,omitempty"`
	SMS     *WebhookConfig `json:"sms,omitempty"`
	Push    *WebhookConfig `json:"push,omitempty"`
	// Default is the channel of callers that name none. It may be left out where there
	// is one channel.
	Default string `json:"default,omitempty"`
}

// An EmailConfig is the channel [Email].
type EmailConfig struct {
	mailer.Config
	To      []string `json:"to"`                // who is notified
	Subject string   `json:"subject,omitempty"` // "Notification" if empty
}

// A WebhookConfig is one of the other channels.
type WebhookConfig struct {
	// Config's hosts, and those of its credentials, are left out: they are the URL's.
	netguard.Config
	// URL is where the message is posted to. It is a reference where the URL itself is a
	// secret, as those of chats are.
	URL string `json:"url"`
	// Format is "json", also if empty, or "form".
	Format string `json:"format,omitempty"`
	// Body is what is posted: JSON in whose texts {message} and {channel} stand for the
	// caller's. {"channel": "{channel}", "message": "{message}"} if empty. That of a form
	// is an object of texts.
	Body json.RawMessage `json:"body,omitempty"`
}

const webhookSchema = `{
      "type": "object",
      "properties": {
        "url": {"type": "string", "minLength": 1},
        "format": {"type": "string", "enum": ["json", "form"]},
        "body": {},
        "allowAddresses": {"type": "array", "items": {"type": "string"}},
        "credentials": {"type": "array", "items": {
          "type": "object",
          "properties": {
            "header": {"type": "string"},
            "scheme": {"type": "string"},
            "secret": {"type": "string"}
          },
          "required": ["secret"],
          "additionalProperties": false
        }},
        "caFile": {"type": "string"},
        "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000}
      },
      "required": ["url"],
      "additionalProperties": false
    }`

// ConfigProperties are the members of a [Config] in JSON Schema, for the schemas of
// configurations that have more.
const ConfigProperties = `
    "email": {
      "type": "object",
      "properties": {` + mailer.ConfigProperties + `,
        "to": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 100},
        "subject": {"type": "string"}
      },
      "required": ["server", "from", "to"],
      "additionalProperties": false
    },
    "webhook": ` + webhookSchema + `,
    "sms": ` + webhookSchema + `,
    "push": ` + webhookSchema + `,
    "default": {"type": "string", "enum": ["email", "webhook", "sms", "push"]}`

// ConfigSchema is the JSON Schema of a [Config]. That one channel is there, New checks.
const ConfigSchema = `{
  "type": "object",
  "properties": {` + ConfigProperties + `
  },
  "additionalProperties": false
}`

// New returns a notifier. It is an error if there is no channel, or one of them cannot
// work as it is configured.
func New(c Config, secret func(ref string) (string, error)) (*Notifier, error) {
	n := &Notifier{channels: map[string]channel{}, standard: c.Default}
	if err := n.open(c, secret); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Notifier) open(c Config, secret func(ref string) (string, error)) error {
	if c.Email != nil {
		opened, err := newEmail(*c.Email, secret)
		if err != nil {
			return fmt.Errorf("%s: %w", Email, err)
		}
		n.add(Email, opened)
	}
	for _, hook := range []struct {
		name   string
		config *WebhookConfig
	}{{Webhook, c.Webhook}, {SMS, c.SMS}, {Push, c.Push}} {
		if hook.config == nil {
			continue
		}
		opened, err := newWebhook(hook.name, *hook.config, secret)
		if err != nil {
			return fmt.Errorf("%s: %w", hook.name, err)
		}
		n.add(hook.name, opened)
	}
	switch {
	case len(n.names) == 0:
		return errors.New("no channel is configured: email, webhook, sms or push")
	case n.standard == "" && len(n.names) == 1:
		n.standard = n.names[0]
	case n.standard != "" && n.channels[n.standard] == nil:
		return fmt.Errorf("default: the channel %q is not configured", n.standard)
	}
	return nil
}

func (n *Notifier) add(name string, c channel) {
	n.names = append(n.names, name)
	n.channels[name] = c
}
