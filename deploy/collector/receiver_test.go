package collector_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// A collector is the receiver of the OpenTelemetry Collector, with a pipeline that keeps what
// comes. It is safe for concurrent use.
type collector struct {
	t          *testing.T
	http, grpc string // addresses
	tls        map[string]any

	running []component.Component

	mu      sync.Mutex
	refusal error           // instead of taking anything; guarded by mu
	refused int             // requests; guarded by mu
	tokens  map[string]bool // the values of the header x-token; guarded by mu
	traces  []ptrace.Traces // guarded by mu
	logs    []plog.Logs     // guarded by mu
}

// newCollector listens for both protocols until the test ends. Without files of TLS it
// does so in the clear.
func newCollector(t *testing.T, tls map[string]any) *collector {
	t.Helper()
	c := &collector{t: t, http: freeAddress(t), grpc: freeAddress(t), tls: tls, tokens: map[string]bool{}}
	c.start()
	t.Cleanup(c.stop)
	return c
}

// freeAddress is one that nobody listens on: a collector that goes comes back there.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (c *collector) start() {
	c.t.Helper()
	protocol := func(address string) map[string]any {
		p := map[string]any{"endpoint": address, "include_metadata": true}
		if c.tls != nil {
			p["tls"] = c.tls
		}
		return p
	}
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	conf := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": protocol(c.http), "grpc": protocol(c.grpc)}})
	if err := conf.Unmarshal(cfg); err != nil {
		c.t.Fatal(err)
	}
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err := consumer.NewTraces(c.takeTraces)
	if err != nil {
		c.t.Fatal(err)
	}
	logs, err := consumer.NewLogs(c.takeLogs)
	if err != nil {
		c.t.Fatal(err)
	}
	ofTraces, err := factory.CreateTraces(context.Background(), settings, cfg, traces)
	if err != nil {
		c.t.Fatal(err)
	}
	ofLogs, err := factory.CreateLogs(context.Background(), settings, cfg, logs)
	if err != nil {
		c.t.Fatal(err)
	}
	c.running = []component.Component{ofTraces, ofLogs}
	for _, r := range c.running {
		if err := r.Start(context.Background(), componenttest.NewNopHost()); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *collector) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, r := range c.running {
		if err := r.Shutdown(ctx); err != nil {
			c.t.Error(err)
		}
	}
	c.running = nil
}

// refuse has the pipeline fail with an error, or with none.
func (c *collector) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal, c.refused = err, 0
}

// judge notes who sends, and returns how that is refused.
func (c *collector) judge(ctx context.Context) error {
	for _, token := range client.FromContext(ctx).Metadata.Get("x-token") {
		c.tokens[token] = true
	}
	if c.refusal != nil {
		c.refused++
	}
	return c.refusal
}

func (c *collector) takeTraces(ctx context.Context, traces ptrace.Traces) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.judge(ctx); err != nil {
		return err
	}
	c.traces = append(c.traces, traces)
	return nil
}

func (c *collector) takeLogs(ctx context.Context, logs plog.Logs) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.judge(ctx); err != nil {
		return err
	}
	c.logs = append(c.logs, logs)
	return nil
}

// A spanOf is a span with what it is a part of.
type spanOf struct {
	ptrace.Span
	resource map[string]any
	scope    string
}

// spans are those of a trace, by their services, kinds and names.
func (c *collector) spans(trace string) map[string]spanOf {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]spanOf{}
	for _, traces := range c.traces {
		for _, of := range traces.ResourceSpans().All() {
			resource := of.Resource().Attributes().AsRaw()
			for _, scope := range of.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					if s.TraceID().String() == trace {
						name, _ := resource["service.name"].(string)
						all[name+" "+s.Kind().String()+" "+s.Name()] = spanOf{s, resource, scope.Scope().Name()}
					}
				}
			}
		}
	}
	return all
}

// A recordOf is a record of a log with what it is a part of.
type recordOf struct {
	plog.LogRecord
	resource map[string]any
}

// records are those of a scope.
func (c *collector) records(scope string) (all []recordOf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, logs := range c.logs {
		for _, of := range logs.ResourceLogs().All() {
			for _, scoped := range of.ScopeLogs().All() {
				for _, r := range scoped.LogRecords().All() {
					if scoped.Scope().Name() == scope {
						all = append(all, recordOf{r, of.Resource().Attributes().AsRaw()})
					}
				}
			}
		}
	}
	return all
}
