package mcpbridge_test

import (
	"context"
	"encoding/json"
	"net"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/rpc"
)

// BenchmarkCall compares a call of a tool through the bridge with one of the same tool
// served by the protocol's library alone, over a pipe: what the bridge adds before the
// agent makes the call.
func BenchmarkCall(b *testing.B) {
	answer := json.RawMessage(`{"n":1}`)
	run := func(b *testing.B, s *mcp.ClientSession) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "librarian__search", Arguments: json.RawMessage(`{"title":"Dune"}`)}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("bridge", func(b *testing.B) {
		a := &agent{call: func(context.Context, rpc.Request) (*rpc.Result, error) {
			return &rpc.Result{Status: rpc.StatusOK, CorrelationID: "019aa8f4-1d2c-7c3e-9f00-000000000000", Response: answer}, nil
		}}
		a.offer(peer(b, "librarian", search)...)
		run(b, connect(b, open(b, a, mcpbridge.Options{}), era2026, nil))
	})
	b.Run("library", func(b *testing.B) {
		server := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "librarian__search", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: answer, Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}, nil
		})
		ours, theirs := net.Pipe()
		served, err := server.Connect(b.Context(), &mcp.IOTransport{Reader: ours, Writer: ours}, nil)
		if err != nil {
			b.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(b.Context(), &mcp.IOTransport{Reader: theirs, Writer: theirs}, nil)
		if err != nil {
			b.Fatal(err)
		}
		run(b, session)
		_ = session.Close()
		_ = served.Wait()
	})
}
