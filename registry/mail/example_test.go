package mail_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/mail"
)

func Example() {
	known := registry.New()
	if err := known.Register(mail.Resolver{}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx}, []registry.Capability{
		{Key: "mail", Config: json.RawMessage(`{"server": "mail.example.com", "from": "agent@example.com", "recipients": ["*@example.com"]}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	result := agent.Call(ctx, "send_mail", json.RawMessage(`{"to": ["eve@evil.test"], "subject": "Numbers", "body": "1, 2, 3"}`))
	fmt.Println(registry.FailureCode(result))
	// Output:
	// permission_denied
}
