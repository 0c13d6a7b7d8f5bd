package mcphttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// A server of the protocol's library, for the holder of a token.
func Example() {
	greeter := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	greeter.AddTool(&mcp.Tool{Name: "greet", Description: "Greets.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil
		})
	const secret = "4b6f9c0d2e8a71f35d9e60b7c8a2f143" // of a file that nobody else can read
	log := slog.New(slog.DiscardHandler)
	handler, err := mcphttp.New(mcphttp.Config{
		Server: func(string) (*mcp.Server, error) { return greeter, nil },
		Auth:   mcphttp.Auth{Tokens: []mcphttp.Token{{Client: "desk", Secret: secret}}},
		Logger: log,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = handler.Check(listener.Addr(), false)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	server := mcphttp.NewServer(handler, log)
	go server.Serve(listener)

	client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint:   "http://" + listener.Addr().String() + handler.Path(),
		HTTPClient: &http.Client{Transport: bearerTransport(secret)},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)

	session.Close()
	handler.Close(context.Background()) // before Shutdown, which waits for streams
	server.Shutdown(context.Background())
	// Output: hello
}
