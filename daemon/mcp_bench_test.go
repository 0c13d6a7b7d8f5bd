package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/daemon/control"
)

// BenchmarkMCP compares a call of a tool through an agent's HTTP endpoint to a skill in Go, with
// permissions, contracts at both ends, limits and the access log, with a call of the same tool
// that the protocol's library serves by itself. They call by turns, so that whatever else the
// machine does slows down both: agent/library is the ratio of the medians, and cpu-agent/library
// that of the processors' time for the calls, both ends of the protocol included. Each client
// waits for its answer before it calls again.
func BenchmarkMCP(b *testing.B) {
	type number struct {
		N int `json:"n"`
	}
	all := files()
	all["callee/capabilities.yaml"] = "version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\n" +
		"capabilities:\n  - name: go\n    inputSchema: &n {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}\n    outputSchema: *n\n"
	cfg := load(b, all)
	cfg.Handlers = handle(echo)
	cfg.Logger = slog.New(slog.DiscardHandler)
	f := startFleet(b, cfg)
	defer stop(b, f)
	caller, _ := f.Daemon("caller")
	agent, release, err := caller.MCPListen(b.Context(), control.MCPListenOptions{MCPOptions: control.MCPOptions{Client: "bench"}})
	if err != nil {
		b.Fatal(err)
	}
	defer release()

	server := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "callee__go", Description: "Echoes."}, func(_ context.Context, _ *mcp.CallToolRequest, in number) (*mcp.CallToolResult, number, error) {
		return nil, in, nil
	})
	library := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer library.Close()

	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var took [2][]time.Duration
			var cpu [2]time.Duration
			sessions := [2][]*mcp.ClientSession{mcpSessions(b, clients, library.URL, ""), mcpSessions(b, clients, agent.URL, agent.Token)}
			for b.Loop() {
				for i := range sessions {
					start := cpuTime(b)
					took[i] = append(took[i], eachCalls(b, sessions[i])...)
					cpu[i] += cpuTime(b) - start
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			middle := len(took[0]) / 2
			b.ReportMetric(float64(took[1][middle])/float64(took[0][middle]), "agent/library")
			b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu-agent/library")
			b.ReportMetric(float64(took[0][middle].Microseconds()), "library-µs/call")
			b.ReportMetric(float64(took[1][middle].Microseconds()), "agent-µs/call")
		})
	}
}

// cpuTime is the processors' time that this process has taken.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// mcpSessions connects clients to an endpoint.
func mcpSessions(b *testing.B, clients int, url, token string) (all []*mcp.ClientSession) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	b.Cleanup(transport.CloseIdleConnections)
	for range clients {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &mcp.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: bearer{transport, token}},
		}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = session.Close() })
		all = append(all, session)
	}
	return all
}

// bearer adds a token to requests.
type bearer struct {
	*http.Transport
	token string
}

func (t bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.Transport.RoundTrip(r)
}

// eachCalls makes each client call three times, all clients at once.
func eachCalls(b *testing.B, sessions []*mcp.ClientSession) []time.Duration {
	const calls = 3
	var all sync.WaitGroup
	took := make([]time.Duration, calls*len(sessions))
	for i, session := range sessions {
		all.Go(func() {
			for n := range calls {
				start := time.Now()
				result, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "callee__go", Arguments: json.RawMessage(`{"n":1}`)})
				if err != nil || result.IsError {
					b.Error(err, result)
				}
				took[calls*i+n] = time.Since(start)
			}
		})
	}
	all.Wait()
	return took
}
