package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/otlptest"
	"github.com/agentd/agentd/rpc"
)

// traced has a fleet send its spans to a collector, soon.
func traced(t testing.TB, cfg *daemon.Config, sampler tracing.Sampler) *otlptest.Collector {
	t.Helper()
	c, err := otlptest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_BSP_SCHEDULE_DELAY": "10"}
	if cfg.Traces, _, err = tracing.FromEnv(func(name string) string { return env[name] }); err != nil {
		t.Fatal(err)
	}
	cfg.Traces.Sampler = sampler
	return c
}

// wantTree waits until a trace is as it should be.
func wantTree(t *testing.T, c *otlptest.Collector, trace, want string, keys ...string) {
	t.Helper()
	want = strings.TrimLeft(strings.ReplaceAll(want, "\t", ""), "\n")
	eventually.Succeeds(t, "the trace is there", func() error {
		if got := otlptest.Tree(c.Spans(trace), keys...); got != want {
			return fmt.Errorf("the tree is\n%s\nand not\n%s", got, want)
		}
		return nil
	})
}

const traceOne = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A request of an MCP client is the root of the calls that it makes, with its names; a skill's
// tools are below the skill's run, and what they call is below them. What vendors add to a
// trace goes with it.
func TestTraceOfMCPAndTools(t *testing.T) {
	all := files()
	all["caller/agent.yaml"] = "name: caller\nmcp: {clients: [{name: a}]}\n"
	all["callee/agent.yaml"] += "capabilities: {peers: {tools: [callee__go]}}\n"
	all["callee/rpc-peers.yaml"] = all["rpc-peers.yaml"]
	cfg := load(t, all)
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if string(inv.Payload) == `{"n":1}` {
			if answer := use(ctx, "callee__go", `{"n":2}`); !strings.Contains(answer, `{"n":2}`) {
				t.Error(answer)
			}
		}
		return inv.Payload, nil
	})
	c := traced(t, &cfg, tracing.Sampler{Ratio: 1})
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("caller")
	s := mcpClient(t, d, "a")
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{
		Meta: mcp.Meta{"traceparent": traceOne, "tracestate": "vendor=1"}, Name: "callee__go", Arguments: json.RawMessage(`{"n":1}`),
	}); err != nil {
		t.Fatal(err)
	}
	wantTree(t, c, "0af7651916cd43dd8448eb211c80319c", `
caller SERVER "tools/call callee__go" mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=callee__go
  caller CLIENT "callee/go"
    callee SERVER "callee/go"
      callee INTERNAL "run go" agentd.skill.kind=go
        callee INTERNAL "execute_tool callee__go" gen_ai.operation.name=execute_tool gen_ai.tool.name=callee__go
          callee CLIENT "callee/go"
            callee SERVER "callee/go"
              callee INTERNAL "run go" agentd.skill.kind=go
`, "agentd.skill.kind", "mcp.method.name", "gen_ai.operation.name", "gen_ai.tool.name")
	for _, s := range c.Spans("0af7651916cd43dd8448eb211c80319c") {
		if s.State != "vendor=1" {
			t.Errorf("%s has the state %q", s.Name, s.State)
		}
	}
	// Other requests are there by their methods alone; of a tool that does not exist, the name
	// is a stranger's.
	_, _ = s.ListTools(t.Context(), nil)
	_, _ = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "hunter2"})
	eventually.Holds(t, "they are there", func() bool {
		var names []string
		for _, s := range c.Spans("") {
			names = append(names, s.Name)
		}
		return slices.Contains(names, "tools/list") && slices.Contains(names, "initialize") && slices.Contains(names, "tools/call _OTHER")
	})
	for _, s := range c.Spans("") {
		if strings.Contains(s.Raw.String(), "hunter2") {
			t.Errorf("the client's words are in %s", s.Raw)
		}
	}
}

// Each attempt that another one follows is an event of the call, with its code; the callee has
// a span for each.
func TestTraceOfRetries(t *testing.T) {
	all := files()
	all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "  - name: go\n",
		"  - name: go\n    idempotent: true\n    retryPolicy: {maxAttempts: 3, initialDelayMs: 1}\n", 1)
	cfg := load(t, all)
	var tries atomic.Int64
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if tries.Add(1) < 3 {
			return nil, &rpc.SkillError{Message: "hunter2", Retryable: true}
		}
		return inv.Payload, nil
	})
	c := traced(t, &cfg, tracing.Sampler{Ratio: 1})
	f := startFleet(t, cfg)
	defer stop(t, f)
	r, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{
		To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Traceparent: traceOne, Tracestate: "vendor=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	wantTree(t, c, r.TraceID, `
caller CLIENT "callee/go" agentd.attempts=3
  callee SERVER "callee/go" failed HANDLER_ERROR agentd.attempt=1
    callee INTERNAL "run go" failed HANDLER_ERROR
  callee SERVER "callee/go" failed HANDLER_ERROR agentd.attempt=2
    callee INTERNAL "run go" failed HANDLER_ERROR
  callee SERVER "callee/go" agentd.attempt=3
    callee INTERNAL "run go"
`, "agentd.attempts", "agentd.attempt")
	for _, s := range c.Spans(r.TraceID) {
		if s.Kind == "CLIENT" && (strings.Join(s.Events, " ") != "retry retry" || s.Parent != "b7ad6b7169203331") {
			t.Errorf("the call is %+v", s)
		}
		if s.State != "vendor=1" {
			t.Errorf("%s has the state %q", s.Name, s.State)
		}
		if strings.Contains(s.Raw.String(), "hunter2") {
			t.Errorf("the skill's words are in %s", s.Raw)
		}
	}
}

// A request that waits for its turn shows how long.
func TestTraceOfQueue(t *testing.T) {
	all := files()
	all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "  - name: go\n", "  - name: go\n    concurrency: 1\n", 1)
	cfg := load(t, all)
	release, began := make(chan struct{}), make(chan struct{}, 2)
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		began <- struct{}{}
		return echoAfter(release)(ctx, inv)
	})
	c := traced(t, &cfg, tracing.Sampler{Ratio: 1})
	f := startFleet(t, cfg)
	defer stop(t, f)
	first, second := make(chan *rpc.Result, 1), make(chan *rpc.Result, 1)
	request := func(result chan<- *rpc.Result) {
		r, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}
	go request(first)
	<-began
	go request(second)
	d, _ := f.Daemon("callee")
	eventually.Holds(t, "one waits", func() bool {
		for _, c := range d.Status().Capabilities {
			if c.Waiting == 1 {
				return true
			}
		}
		return false
	})
	close(release)
	<-first
	wantTree(t, c, (<-second).TraceID, `
caller CLIENT "callee/go"
  callee SERVER "callee/go"
    callee INTERNAL "queue"
    callee INTERNAL "run go"
`)
}

// A collector that hangs delays neither a call nor the end of the agent; it is a condition
// with which the agent stays ready, in status and in one line of the log.
func TestCollectorThatHangs(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	c := traced(t, &cfg, tracing.Sampler{Ratio: 1})
	c.Respond(otlptest.Answer{Status: 503})
	f := startFleet(t, cfg)
	call := func() {
		if _, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	d, _ := f.Daemon("callee")
	eventually.Succeeds(t, "status says that it is away", func() error {
		for _, w := range d.Warnings() {
			if strings.HasPrefix(w, string(health.Telemetry)) {
				return d.Ready()
			}
		}
		return errors.New(strings.Join(d.Warnings(), "; "))
	})
	c.Hang()
	for range 100 {
		call()
	}
	stop(t, f) // with a bound far above that of the spans
}

// Where nothing is sampled nothing is sent, and calls are in their traces all the same.
func TestUnsampled(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	c := traced(t, &cfg, tracing.Sampler{})
	f := startFleet(t, cfg)
	r, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
	if err != nil || len(r.TraceID) != 32 {
		t.Errorf("%+v, %v", r, err)
	}
	stop(t, f)
	if all := c.Spans(""); len(all) > 0 {
		t.Errorf("%d spans were sent", len(all))
	}
}

// A peer that has every call recorded has so many of them recorded as it may: its calls go on,
// and somebody is told.
func TestPeersTracesAreLimited(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	c := traced(t, &cfg, tracing.Sampler{Ratio: 1})
	cfg.Traces.PeerLimit = 1
	f := startFleet(t, cfg)
	d, _ := f.Daemon("callee")
	const calls = 20
	for range calls {
		if _, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "it is told", func() bool {
		return slices.ContainsFunc(d.Warnings(), func(w string) bool {
			return strings.HasPrefix(w, string(health.Telemetry)) && strings.Contains(w, "AGENTD_TRACES_PEER_LIMIT")
		})
	})
	stop(t, f)
	began, served := 0, 0
	for _, s := range c.Spans("") {
		switch s.Kind {
		case "CLIENT":
			began++
		case "SERVER":
			served++
		}
	}
	if began != calls || served == 0 || served == calls {
		t.Errorf("%d calls are recorded where they begin, and %d where they are served", began, served)
	}
}
