package mcphttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// What the handler costs: a call of a tool through it, and of the same tool on a server that the
// library serves alone, by turns, so that whatever else the machine does slows down both.
// handler/library is the ratio of the medians. Each client waits for its answer before it
// calls again.
func BenchmarkCall(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	fixture := func() *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "count", Description: "Counts.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return text(`{"count":4}`), nil
			})
		return server
	}
	for _, version := range []string{modern, legacy} {
		bare := fixture()
		library := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bare }, &mcp.StreamableHTTPOptions{Stateless: version == modern})
		guarded := fixture()
		handler, err := mcphttp.New(mcphttp.Config{
			Server: func(string) (*mcp.Server, error) { return guarded, nil },
			Auth:   tokens(), Logger: log, Limits: mcphttp.Limits{MaxSessions: 100, MaxPending: 100},
		})
		if err != nil {
			b.Fatal(err)
		}
		servers := []*httptest.Server{httptest.NewServer(library), httptest.NewUnstartedServer(nil)}
		servers[1].Config = mcphttp.NewServer(handler, log)
		servers[1].Start()
		for _, clients := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/clients=%d", version, clients), func(b *testing.B) { compare(b, servers, version, clients) })
		}
		handler.Close(b.Context())
		servers[0].Close()
		servers[1].Close()
	}
}

// compare lets clients call by turns, and reports the ratio of the medians.
func compare(b *testing.B, servers []*httptest.Server, version string, clients int) {
	sessions := [2][]*mcp.ClientSession{}
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	for i, server := range servers {
		for range clients {
			session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &mcp.StreamableClientTransport{
				Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: withToken{transport}}, DisableStandaloneSSE: true,
			}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			sessions[i] = append(sessions[i], session)
		}
	}
	var took [2][]time.Duration
	for b.Loop() {
		for i := range sessions {
			took[i] = append(took[i], round(b, sessions[i])...)
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	middle := len(took[0]) / 2
	b.ReportMetric(float64(took[1][middle])/float64(took[0][middle]), "handler/library")
	b.ReportMetric(float64(took[0][middle].Microseconds()), "library-µs/call")
	b.ReportMetric(float64(took[1][middle].Microseconds()), "handler-µs/call")
}

// round makes each client call three times, all at once.
func round(b *testing.B, sessions []*mcp.ClientSession) []time.Duration {
	var all sync.WaitGroup
	took := make([]time.Duration, 3*len(sessions))
	for i, session := range sessions {
		all.Go(func() {
			for call := range 3 {
				start := time.Now()
				result, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "count"})
				if err != nil || result.IsError {
					b.Error(err)
				}
				took[3*i+call] = time.Since(start)
			}
		})
	}
	all.Wait()
	return took
}

// withToken adds a token to requests that share their connections.
type withToken struct{ *http.Transport }

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+deskToken)
	return t.Transport.RoundTrip(r)
}
