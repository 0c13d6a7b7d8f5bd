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
	calleeAddr, callerAddr := bus.Connect(), bus.Connect()
	defer calleeAddr.Close()
	defer callerAddr.Close()

	inbox, err := callee.New(callee.Config{
		Self: "agent://indexer", Contract: contract, Records: rpc.Records{Auditor: &ledger{}},
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
	if err := inbox.Listen(calleeAddr, "agents.indexer.requests"); err != nil {
		panic(err)
	}
	defer inbox.Shutdown(context.Background())

	client, err := caller.New(caller.Config{
		Self: "agent://me", Records: rpc.Records{Auditor: &ledger{}}, Transports: []transport.Transport{callerAddr},
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
