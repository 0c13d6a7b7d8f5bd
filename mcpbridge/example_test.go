package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/rpc"
)

// library stands for the daemon, which makes real calls.
type library struct{ callables []mcpbridge.Callable }

func (l *library) Callables(mcpbridge.Client) ([]mcpbridge.Callable, error) { return l.callables, nil }

func (l *library) RequestAgent(_ context.Context, c mcpbridge.Client, r rpc.Request) (*rpc.Result, error) {
	fmt.Printf("%s calls %s of %s with %s\n", c, r.Capability, r.To, r.Payload)
	return &rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`{"isbn": 9780441172719}`)}, nil
}

func Example() {
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://librarian
transports: [{kind: memory, topics: {requests: librarian}}]
capabilities:
- name: search
  description: Finds books.
  inputSchema: {type: object, properties: {title: {type: string}}, required: [title]}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	backend := &library{callables: []mcpbridge.Callable{{Address: doc.Agent, Capability: doc.Capabilities[0]}}}
	bridge := mcpbridge.New(backend, mcpbridge.Options{})

	// In a program, the stream is its standard input and output.
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- bridge.ServeStream(ctx, mcpbridge.Client{Name: "editor"}, ours) }()

	client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: theirs, Writer: theirs}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "librarian__search", Arguments: map[string]any{"title": "Dune"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	_ = session.Close()
	<-served
	fmt.Println(bridge.Close(ctx))
	// Output:
	// MCP:editor calls search of agent://librarian with {"title":"Dune"}
	// {"response":{"isbn":9780441172719}}
	// <nil>
}
