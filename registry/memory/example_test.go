package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/memory"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	capabilities, err := registry.Parse("agent.json", []byte(`{"capabilities": {"memory": {"maxNotes": 1000}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	known := registry.New()
	if err := known.Register(memory.New(nil)); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx, Agent: "writer", StateDir: dir}, capabilities)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	for _, call := range []struct{ tool, args string }{
		{"remember", `{"text": "Ada wants invoices by mail.", "tags": ["ada"]}`},
		{"search_notes", `{"query": "invoice"}`},
	} {
		var result struct {
			ID    int64
			Notes []struct{ Excerpt string }
		}
		if err := json.Unmarshal(agent.Call(ctx, call.tool, json.RawMessage(call.args)).StructuredContent.(json.RawMessage), &result); err != nil {
			fmt.Println(err)
		}
		fmt.Println(result.ID, result.Notes)
	}
	// Output:
	// 1 []
	// 0 [{Ada wants invoices by mail.}]
}
