package files_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/files"
)

func Example() {
	known := registry.New()
	if err := known.Register(files.Resolver{}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	config, err := json.Marshal(map[string]any{"folders": map[string]string{"work": os.TempDir()}, "tools": []string{"read_file"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	agent, err := known.Resolve(registry.Context{Context: ctx}, []registry.Capability{{Key: "files", Config: config}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	result := agent.Call(ctx, "read_file", json.RawMessage(`{"path": "work/../etc/passwd"}`))
	fmt.Println(registry.FailureCode(result))
	// Output:
	// invalid_arguments
}
