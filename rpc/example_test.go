package rpc_test

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
	bus := memory.NewBus(memory.Options{})
	server, me := bus.Connect(), bus.Connect()
	defer server.Close()
	defer me.Close()

	inbox, err := callee.New(callee.Config{
		Self: "agent://greeter", Contract: contract, Records: rpc.Records{Auditor: discard{}},
		Handlers: map[string]rpc.Handler{"greet": rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			var in struct{ Name string }
			if err := json.Unmarshal(inv.Payload, &in); err != nil {
				return nil, err
			}
			return json.Marshal("Hello " + in.Name)
		})},
	})
	if err != nil {
		panic(err)
	}
	if err := inbox.Listen(server, "agents.greeter.requests"); err != nil {
		panic(err)
	}
	defer inbox.Shutdown(context.Background())

	client, err := caller.New(caller.Config{
		Self: "agent://me", Records: rpc.Records{Auditor: discard{}}, Transports: []transport.Transport{me},
		Peers: rpc.Peers{"agent://greeter": {
			Address: "agent://greeter", Transport: "memory", Topic: "agents.greeter.requests", Contract: contract,
		}},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	for _, payload := range []string{`{"name":"Ada"}`, `{"nmae":"Ada"}`} {
		res, err := client.RequestAgent(context.Background(), rpc.Request{
			To: "agent://greeter", Capability: "greet", Payload: json.RawMessage(payload),
		})
		fmt.Println(res.Status, string(res.Response), err)
	}
	// Output:
	// ok "Hello Ada" <nil>
	// schema-violation  EAGENTRPC_SCHEMA_VIOLATION: capability "greet" request failed schema validation: /name missing required property "name"
}

func ExampleProgress() {
	contract, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://indexer
transports: [{kind: memory, topics: {requests: agents.indexer.requests}}]
capabilities: [{name: reindex, progress: true}]
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		panic(err)
	}
	bus := memory.NewBus(memory.Options{})
	server, me := bus.Connect(), bus.Connect()
	defer server.Close()
	defer me.Close()

	inbox, err := callee.New(callee.Config{
		Self: "agent://indexer", Contract: contract, Records: rpc.Records{Auditor: discard{}},
		Handlers: map[string]rpc.Handler{"reindex": rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
			for done := range 3 {
				if err := rpc.Progress(ctx, fmt.Appendf(nil, `{"done":%d,"of":3}`, done+1)); err != nil {
					return nil, err
				}
			}
			return json.RawMessage(`"indexed"`), nil
		})},
	})
	if err != nil {
		panic(err)
	}
	if err := inbox.Listen(server, "agents.indexer.requests"); err != nil {
		panic(err)
	}
	defer inbox.Shutdown(context.Background())

	client, err := caller.New(caller.Config{
		Self: "agent://me", Records: rpc.Records{Auditor: discard{}}, Transports: []transport.Transport{me},
		Peers: rpc.Peers{"agent://indexer": {Address: "agent://indexer", Transport: "memory", Topic: "agents.indexer.requests"}},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	res, err := client.RequestAgent(context.Background(), rpc.Request{
		To: "agent://indexer", Capability: "reindex",
		OnProgress: func(e rpc.ProgressEvent) { fmt.Println(e.Seq, string(e.Value)) },
	})
	fmt.Println(res.Status, string(res.Response), err)
	// Output:
	// 1 {"done":1,"of":3}
	// 2 {"done":2,"of":3}
	// 3 {"done":3,"of":3}
	// ok "indexed" <nil>
}
