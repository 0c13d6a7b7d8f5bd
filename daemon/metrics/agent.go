package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/rpc"
)

// An Agent is what the metrics of one agent are made of. Its functions are called by scrapes.
type Agent struct {
	// ID is the agent's.
	ID string
	// Calls and Audit have what is counted as it happens.
	Calls *Calls
	Audit *Audit
	// Models has what skills report of language models. Nil is none.
	Models *Models
	// Lost are the signals that go to a collector, with how much of each never arrived. Nil is
	// none.
	Lost func() map[string]otlp.Dropped
	// Ready says why the agent is not ready.
	Ready func() error
	// Status is what `agentd status` shows; ok is false while the agent starts or stops, and knows
	// less than all of it.
	Status func() (s control.Status, ok bool)
	// Live asks the broker. What cannot be had is left out.
	Live func(ctx context.Context) Live
	// Client reports whether the agent's files list a client, of the Model Context Protocol or of
	// the control API.
	Client func(name string) bool
}

// Live is what only the broker knows.
type Live struct {
	// RoundTrips are the times to brokers and back, by [control.Broker].Broker.
	RoundTrips map[string]time.Duration
	// Queue is nil for an agent without durable capabilities, and where the broker does not say.
	Queue *Queue
}

// A Queue is how JetStream keeps an agent's requests.
type Queue struct {
	Waiting, InFlight, Redelivered, Dead uint64
}

// Audit counts what becomes of records on their way to the audit log. It is safe for concurrent
// use, and nil counts nothing.
type Audit struct {
	appends    latency
	refused    atomic.Uint64
	mu         sync.Mutex
	violations map[violation]uint64 // guarded by mu
}

// A violation is what violations are counted by.
type violation struct {
	side       rpc.Side
	peer       envelope.Address
	capability string
}

// Appended counts an append, and what came of it.
func (a *Audit) Appended(took time.Duration, err error) {
	if a == nil {
		return
	}
	if err != nil {
		a.refused.Add(1)
		return
	}
	a.appends.observe(took)
}

// Refused counts an append that was not tried.
func (a *Audit) Refused() {
	if a != nil {
		a.refused.Add(1)
	}
}

// RefusedAppends is how many appends the log has not taken.
func (a *Audit) RefusedAppends() uint64 {
	if a == nil {
		return 0
	}
	return a.refused.Load()
}

// Violated counts a payload that breaks its schema, under the names of the pair in calls.
func (a *Audit) Violated(v *rpc.SchemaViolation, calls *Calls) {
	if a == nil {
		return
	}
	peer, capability := calls.either(v.Peer, v.Capability)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.violations == nil {
		a.violations = map[violation]uint64{}
	}
	a.violations[violation{v.Side, peer, capability}]++
}

func (a *Audit) collect(e *emitter, calls *Calls) {
	a.appends.send(e, AuditAppendDuration)
	a.mu.Lock()
	defer a.mu.Unlock()
	for v, n := range a.violations {
		if peer, capability := calls.either(v.peer, v.capability); peer != v.peer || capability != v.capability {
			delete(a.violations, v) // of a peer that a reload has removed
			continue
		}
		e.send(ViolationsTotal, float64(n), string(v.side), string(v.peer), v.capability)
	}
}

// An emitter sends the metrics of one agent.
type emitter struct {
	descs map[string]described
	to    chan<- prometheus.Metric
}

type described struct {
	desc *prometheus.Desc
	typ  prometheus.ValueType
}

// send sends one value. A wrong number of labels is a metric that the scrape fails with.
func (e *emitter) send(name string, value float64, labels ...string) {
	d := e.descs[name]
	m, err := prometheus.NewConstMetric(d.desc, d.typ, value, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d.desc, err)
	}
	e.to <- m
}

func (e *emitter) flag(name string, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	e.send(name, value, labels...)
}

// A collector makes the metrics of one agent. It implements [prometheus.Collector].
type collector struct {
	agent Agent
	descs map[string]described
}

func newCollector(a Agent) *collector { return &collector{agent: a, descs: describe(a.ID)} }

// describe describes all metrics of an agent, by their names.
func describe(agent string) map[string]described {
	all := map[string]described{}
	for _, m := range All() {
		typ := prometheus.GaugeValue
		if m.Type == Counter {
			typ = prometheus.CounterValue
		}
		all[m.Name] = described{prometheus.NewDesc(m.Name, m.Help, m.Labels, prometheus.Labels{LabelAgent: agent}), typ}
	}
	return all
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d.desc
	}
}

// liveTimeout bounds what a scrape waits for the broker.
const liveTimeout = time.Second

// Collect implements [prometheus.Collector].
func (c *collector) Collect(to chan<- prometheus.Metric) {
	e := &emitter{c.descs, to}
	c.agent.Calls.collect(e)
	c.agent.Audit.collect(e, c.agent.Calls)
	c.agent.Models.collect(e, c.agent.Calls)
	c.lost(e)
	e.flag(Ready, c.agent.Ready() == nil)
	s, ok := c.agent.Status()
	c.conditions(e, s.Conditions)
	e.send(AuditRefusedTotal, float64(c.agent.Audit.RefusedAppends()))
	if !ok {
		return
	}
	e.send(BuildInfo, 1, s.Version, goVersion())
	c.load(e, &s)
	c.audit(e, s.Audit)
	c.processes(e, &s)
	c.clients(e, &s)
	c.brokers(e, &s)
}

// lost sends what never reached its collector.
func (c *collector) lost(e *emitter) {
	if c.agent.Lost == nil {
		return
	}
	for signal, n := range c.agent.Lost() {
		e.lost(signal, n)
	}
}

func (e *emitter) lost(signal string, n otlp.Dropped) {
	e.send(TelemetryLost, float64(n.Full), signal, "queue_full")
	e.send(TelemetryLost, float64(n.Refused), signal, "refused")
	e.send(TelemetryLost, float64(n.Unsent), signal, "unsent")
}

// conditions sends a value for each kind: an alert needs the 0 before the 1.
func (c *collector) conditions(e *emitter, all []health.Condition) {
	counts := map[health.Kind]int{}
	for _, one := range all {
		counts[one.Kind]++
	}
	for _, kind := range health.Kinds() {
		e.send(Condition, float64(counts[kind]), string(kind))
	}
}
