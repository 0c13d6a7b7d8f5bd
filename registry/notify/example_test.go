package notify_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/notify"
)

func Example() {
	known := registry.New()
	if err := known.Register(notify.Resolver{}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx}, []registry.Capability{
		{Key: "notify", Config: json.RawMessage(`{"webhook": {"url": "https://hooks.example.com/ops", "body": {"text": "{message}"}}}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	// The agent's file has no such channel, so that the tool does not either.
	result := agent.Call(ctx, "send_notification", json.RawMessage(`{"message": "The disk is full.", "channel": "sms"}`))
	fmt.Println(registry.FailureCode(result))
	// Output:
	// invalid_arguments
}
