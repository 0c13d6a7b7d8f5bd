package notification_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/action/notification"
	"github.com/agentd/agentd/internal/notifier"
)

func Example() {
	h, err := notification.New(notification.Config{Config: notifier.Config{
		Webhook: &notifier.WebhookConfig{URL: "https://hooks.example.com/ops", Body: json.RawMessage(`{"text": "{message}"}`)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	_, err = h.Execute(context.Background(), json.RawMessage(`{"message": "The disk is full.", "channel": "sms"}`))
	fmt.Println(err)
	// Output:
	// this agent has no channel "sms"; it has: webhook
}
