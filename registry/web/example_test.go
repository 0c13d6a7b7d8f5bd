package web_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/web"
)

func Example() {
	known := registry.New()
	if err := known.Register(web.Resolver{}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx}, []registry.Capability{
		{Key: "http", Config: json.RawMessage(`{"hosts": ["api.example.com"]}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	result := agent.Call(ctx, "http_get", json.RawMessage(`{"url": "http://169.254.169.254/latest/meta-data/"}`))
	fmt.Println(registry.FailureCode(result))
	// Output:
	// permission_denied
}
