package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/tasks"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	known := registry.New()
	if err := known.Register(tasks.New(nil)); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx, Agent: "worker", StateDir: dir}, []registry.Capability{{Key: "tasks"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	call := func(tool, args string) (r struct {
		Lease, State string
		Task         struct{ Title string }
	}) {
		if err := json.Unmarshal(agent.Call(ctx, tool, json.RawMessage(args)).StructuredContent.(json.RawMessage), &r); err != nil {
			fmt.Println(err)
		}
		return r
	}
	call("add_task", `{"title": "Answer Ada", "priority": 10}`)
	claimed := call("claim_task", `{"leaseSeconds": 60}`)
	fmt.Println(claimed.Task.Title)
	fmt.Println(call("complete_task", `{"id": 1, "lease": "`+claimed.Lease+`", "result": "sent"}`).State)
	// Output:
	// Answer Ada
	// done
}
