package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/history"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "history")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	log, err := auditchain.Open(ctx, filepath.Join(dir, "audit.db"), auditchain.Options{Name: "agent"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	if _, err := log.Append(ctx, call("", "caller", "agent://librarian", "search", "ok")); err != nil {
		fmt.Println(err)
		return
	}
	known := registry.New()
	if err := known.Register(history.New(log)); err != nil {
		fmt.Println(err)
		return
	}
	agent, err := known.Resolve(registry.Context{Context: ctx}, []registry.Capability{{Key: "history"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	var answer struct {
		Calls []struct{ Role, Peer, Capability, Status string }
	}
	result := agent.Call(ctx, "list_calls", json.RawMessage(`{"peer": "agent://librarian"}`))
	raw, _ := result.StructuredContent.(json.RawMessage)
	if err := json.Unmarshal(raw, &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Calls)
	// Output: [{caller agent://librarian search ok}]
}
