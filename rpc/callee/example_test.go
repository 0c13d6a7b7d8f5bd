package callee_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// discard keeps no records. A real agent keeps them in an audit log.
type discard struct{}

func (discard) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error { return nil }

// An inbox serves one capability. It refuses a payload that violates the schema,
// although its caller knows no contract and checks nothing.
func Example() {
	contract, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://adder
transports: [{kind: memory, topics: {requests: agents.adder.requests}}]
capabilities:
  - name: add
    inputSchema: {type: array, items: {type: integer}}
    outputSchema: {type: integer}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		panic(err)
	}
	conn := memory.NewBus(memory.Options{}).Connect()
	defer conn.Close()

	inbox, err := callee.New(callee.Config{
		Self: "agent://adder", Contract: contract, Records: rpc.Records{Auditor: discard{}},
		Handlers: map[string]rpc.Handler{"add": rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			var numbers []int
			if err := json.Unmarshal(inv.Payload, &numbers); err != nil {
				return nil, err
			}
			sum := 0
			for _, n := range numbers {
				sum += n
			}
			return json.Marshal(sum)
		})},
	})
	if err != nil {
		panic(err)
	}
	if err := inbox.Listen(conn, "agents.adder.requests"); err != nil {
		panic(err)
	}
	defer inbox.Shutdown(context.Background())

	client, err := caller.New(caller.Config{
		Self: "agent://me", Records: rpc.Records{Auditor: discard{}}, Transports: []transport.Transport{conn},
		Peers: rpc.Peers{"agent://adder": {Address: "agent://adder", Transport: "memory", Topic: "agents.adder.requests"}},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for _, payload := range []string{`[1, 2, 3]`, `["one"]`} {
		res, _ := client.RequestAgent(context.Background(), rpc.Request{
			To: "agent://adder", Capability: "add", Payload: json.RawMessage(payload),
		})
		fmt.Println(res.Status, string(res.Response))
	}
	// Output:
	// ok 6
	// schema-violation
}
