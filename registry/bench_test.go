package registry_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/registry"
)

// What a tool call costs: the library alone, which checks nothing, the same through the
// registry, and the way that Go code takes.
func BenchmarkCall(b *testing.B) {
	answer := json.RawMessage(`{"count":4}`)
	args := json.RawMessage(`{"text":"four"}`)
	connect := func(b *testing.B, server *mcp.Server) *mcp.ClientSession {
		theirs, ours := mcp.NewInMemoryTransports()
		if _, err := server.Connect(b.Context(), theirs, nil); err != nil {
			b.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), ours, nil)
		if err != nil {
			b.Fatal(err)
		}
		return session
	}
	use := func(b *testing.B, session *mcp.ClientSession) {
		r, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "count", Arguments: args})
		if err != nil || r.IsError {
			b.Fatal(err, r)
		}
	}
	bySession := func(b *testing.B, server *mcp.Server) {
		session := connect(b, server)
		defer session.Close()
		b.ReportAllocs()
		for b.Loop() {
			use(b, session)
		}
	}
	counter := capability("counter", "count")
	counter.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) {
		s := registry.NewServer("counter", "1", c.Tools)
		return s, s.Add(registry.ToolSpec{Key: "count", Description: "Counts.", Input: json.RawMessage(countInput), Output: json.RawMessage(countOutput)},
			func(context.Context, json.RawMessage) (json.RawMessage, error) { return answer, nil })
	}
	reg := registry.New()
	if err := reg.Register(counter); err != nil {
		b.Fatal(err)
	}
	res, err := reg.Resolve(registry.Context{Context: b.Context()}, []registry.Capability{{Key: "counter"}})
	if err != nil {
		b.Fatal(err)
	}
	defer res.Close(context.Background())

	library := func() *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "count", Description: "Counts.", InputSchema: json.RawMessage(countInput), OutputSchema: json.RawMessage(countOutput)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return registry.Success(answer), nil
			})
		return server
	}
	b.Run("library", func(b *testing.B) { bySession(b, library()) })
	b.Run("registry", func(b *testing.B) { bySession(b, res.MCP()) })
	b.Run("registry/Go", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r := res.Call(b.Context(), "count", args); r.IsError {
				b.Fatal(text(r))
			}
		}
	})
	// By turns, so that whatever else the machine does slows down both: registry/library
	// is the ratio of the medians.
	b.Run("ratio", func(b *testing.B) {
		bare, ours := connect(b, library()), connect(b, res.MCP())
		defer bare.Close()
		defer ours.Close()
		var took [2][]time.Duration
		for b.Loop() {
			for i, session := range []*mcp.ClientSession{bare, ours} {
				start := time.Now()
				use(b, session)
				took[i] = append(took[i], time.Since(start))
			}
		}
		for i := range took {
			slices.Sort(took[i])
		}
		middle := len(took[0]) / 2
		b.ReportMetric(float64(took[1][middle])/float64(took[0][middle]), "registry/library")
	})
}
