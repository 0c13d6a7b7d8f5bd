package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/notifier"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/hourly"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

// DefaultPerHour is how many messages an agent may send in an hour, if its file does not
// say.
const DefaultPerHour = 60

// sendNotification is the key of the tool.
const sendNotification = "send_notification"

// A Resolver makes the capability notify.
type Resolver struct{}

// A Config is what the agent's file says about the capability.
type Config struct {
	notifier.Config
	PerHour int `json:"perHour,omitempty"` // DefaultPerHour if 0
}

// Key implements [registry.Resolver].
func (Resolver) Key() string { return "notify" }

// Tools implements [registry.Resolver].
func (Resolver) Tools() []registry.Tool {
	return []registry.Tool{
		{Key: sendNotification, Name: "Send notification", Description: "Sends a short message to the people who are notified by this agent."},
	}
}

// ConfigSchema implements [registry.Resolver].
func (Resolver) ConfigSchema() json.RawMessage {
	return json.RawMessage(`{
  "type": "object",
  "properties": {
    "perHour": {"type": "integer", "minimum": 1, "maximum": 10000},` + notifier.ConfigProperties + `
  },
  "additionalProperties": false
}`)
}

// Resolve implements [registry.Resolver].
func (r Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	var config Config
	if err := json.Unmarshal(c.JSON, &config); err != nil {
		return nil, err
	}
	n, err := notifier.New(config.Config, toolerror.Secret(ctx))
	if err != nil {
		return nil, &registry.ConfigError{Message: err.Error()}
	}
	if config.PerHour == 0 {
		config.PerHour = DefaultPerHour
	}
	s := registry.NewServer(r.Key(), "1", c.Tools)
	s.OnClose(func() error { n.Close(); return nil })
	input, err := inputOf(n)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	limit, err := hourly.Open(ctx, r.Key(), config.PerHour, "notifications", nil)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.OnClose(limit.Close)
	tool := r.Tools()[0]
	err = s.Add(registry.ToolSpec{
		Key: tool.Key, Title: tool.Name, Description: tool.Description, OpenWorld: true,
		Input: input, Output: json.RawMessage(notifier.ReceiptSchema),
	}, toolerror.Handler(ctx.Logger, tool.Key, send(n, limit)))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// inputOf is the schema of the tool's arguments. A model sees the channels that there are,
// and no others.
func inputOf(n *notifier.Notifier) (json.RawMessage, error) {
	channel := map[string]any{"type": "string", "enum": n.Channels()}
	required := []string{"message"}
	if n.Default() == "" {
		required = append(required, "channel")
	} else {
		channel["default"] = n.Default()
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object",
		"properties": map[string]any{
			"message": map[string]any{"type": "string", "minLength": 1, "maxLength": notifier.MaxMessage},
			"channel": channel,
		},
		"required":             required,
		"additionalProperties": false,
	})
	if err != nil {
		return nil, fmt.Errorf("the schema of the tool: %w", err)
	}
	return schema, nil
}

// send is the handler of the tool.
func send(n *notifier.Notifier, limit *hourly.Limit) registry.Handler {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		var a struct {
			Message string `json:"message"`
			Channel string `json:"channel"`
		}
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, failure.Errorf(failure.InvalidArgument, "the arguments are not those of the tool").Because(err)
		}
		message := notifier.Message{Channel: a.Channel, Text: a.Message}
		// What would be refused anyway does not count.
		if err := n.Check(message); err != nil {
			return nil, err
		}
		if err := limit.Take(ctx, 1); err != nil {
			return nil, err
		}
		receipt, err := n.Send(ctx, message)
		if err != nil {
			return nil, err
		}
		return json.Marshal(receipt)
	}
}
