package typed_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/codegen/typed"
)

// A generated client calls Request; the Caller decides how calls travel.
func ExampleRequest() {
	caller := typed.CallerFunc(func(_ context.Context, c typed.Call) (json.RawMessage, error) {
		fmt.Printf("%s/%s %s\n", c.To, c.Capability, c.Payload)
		return json.RawMessage(`["agents.md"]`), nil
	})
	found, err := typed.Request[[]string](context.Background(), caller, "agent://librarian", "search", map[string]string{"query": "agents"}, nil)
	fmt.Println(found, err)
	// Output:
	// agent://librarian/search {"query":"agents"}
	// [agents.md] <nil>
}

// An answer that its type cannot hold is an error that says where.
func ExampleUnmarshal() {
	var sizes map[string]int64
	fmt.Println(typed.Unmarshal([]byte(`{"a":1.0,"b":1.5}`), &sizes))
	// Output: typed: /b: must be an integer
}
