package database_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/database"
)

func Example() {
	known := registry.New()
	if err := known.Register(database.Resolver{}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx, WorkspaceDir: "/nowhere"}, []registry.Capability{
		{Key: "database", Config: json.RawMessage(`{"sqlite": "shop.db"}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	// A database that is not there yet is made by nobody, and keeps no agent from starting.
	result := agent.Call(ctx, "query_database", json.RawMessage(`{"query": "SELECT 1"}`))
	fmt.Println(registry.FailureCode(result))
	// Output:
	// unavailable
}
