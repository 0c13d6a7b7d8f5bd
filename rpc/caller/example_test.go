package caller_test

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

// A client validates a payload before it publishes anything, and an answer before it
// returns it.
func Example() {
	contract, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://greeter
transports: [{kind: memory, topics: {requests: agents.greeter.requests}}]
capabilities:
  - name: greet
    inputSchema: {type: object, properties: {name: {type: string}}, required: [name]}
    outputSchema: {type: string}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		panic(err)
	}
	conn := memory.NewBus(memory.Options{}).Connect()
	defer conn.Close()
	inbox, err := callee.New(callee.Config{
		Self: "agent://greeter", Contract: contract, Records: rpc.Records{Auditor: discard{}},
		Handlers: map[string]rpc.Handler{"greet": rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			return json.RawMessage(`"Hello"`), nil
		})},
	})
	if err != nil {
		panic(err)
	}
	if err := inbox.Listen(conn, "agents.greeter.requests"); err != nil {
		panic(err)
	}
	defer inbox.Shutdown(context.Background())

	client, err := caller.New(caller.Config{
		Self: "agent://me", Records: rpc.Records{Auditor: discard{}}, Transports: []transport.Transport{conn},
		Peers: rpc.Peers{"agent://greeter": {
			Address: "agent://greeter", Transport: "memory", Topic: "agents.greeter.requests", Contract: contract,
		}},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	res, err := client.RequestAgent(context.Background(), rpc.Request{
		To: "agent://greeter", Capability: "greet", Payload: json.RawMessage(`{"name":"Ada"}`),
	})
	fmt.Println(res.Status, string(res.Response), err)
	_, err = client.RequestAgent(context.Background(), rpc.Request{
		To: "agent://greeter", Capability: "greet", Payload: json.RawMessage(`{}`),
	})
	fmt.Println(rpc.CodeOf(err))
	// Output:
	// ok "Hello" <nil>
	// EAGENTRPC_SCHEMA_VIOLATION
}
