package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
)

const (
	// maxModels bounds the models of one capability that are counted by their names: skills choose
	// those. What others use is counted under [Other].
	maxModels = 16
	// idleModel is for how long a model was not used that gives its place to another one. So a
	// capability has at most 16 new names in that time, however many its skill makes up.
	idleModel = time.Hour
	// maxAsking bounds the names without a place that are remembered.
	maxAsking = 64
)

// Values of [LabelTokenType], those of OpenTelemetry's gen_ai.token.type.
const (
	inputTokens  = "input"
	outputTokens = "output"
)

// Models counts what language models have used for an agent, by the word of its skills. It is
// safe for concurrent use, and nil counts nothing.
type Models struct {
	mu           sync.Mutex
	capabilities map[string]*capabilityModels // guarded by mu, and what it holds too
}

// capabilityModels are those of one capability.
type capabilityModels struct {
	named map[model]*tokens
	other *tokens // nil while there was room for all
	// asking are names that found no place. One takes a place that is free when it comes again:
	// names that are made up for each request must not take those of the models in use.
	asking map[model]bool
}

// A model is what tokens are counted by, within a capability.
type model struct{ provider, name, operation string }

// allOthers stands for the models without a place, and for one that its skill calls so.
func allOthers() model { return model{Other, Other, Other} }

// tokens are the histograms of one model.
type tokens struct {
	input, output prometheus.Histogram
	used          time.Time
}

// NewModels returns counters of an agent.
func NewModels() *Models { return &Models{capabilities: map[string]*capabilityModels{}} }

// Observe counts one request to a model, made for a call of a capability. A count of 0 is none.
func (m *Models) Observe(capability string, u *rpc.ModelUsage) {
	if m == nil {
		return
	}
	t := m.find(capability, model{u.Provider, u.Model, u.Operation})
	if u.InputTokens > 0 {
		t.input.Observe(float64(u.InputTokens))
	}
	if u.OutputTokens > 0 {
		t.output.Observe(float64(u.OutputTokens))
	}
}

// find returns the histograms of a model, or those of all that there is no room for.
func (m *Models) find(capability string, of model) *tokens {
	m.mu.Lock()
	defer m.mu.Unlock()
	models := m.capabilities[capability]
	if models == nil {
		models = &capabilityModels{named: map[model]*tokens{}, asking: map[model]bool{}}
		m.capabilities[capability] = models
	}
	now := time.Now()
	t := models.find(of, now)
	t.used = now
	return t
}

func (c *capabilityModels) find(of model, now time.Time) *tokens {
	if t := c.named[of]; t != nil {
		return t
	}
	if of == allOthers() || len(c.named) >= maxModels && !c.makeRoom(of, now) {
		if c.other == nil {
			c.other = newModelTokens()
		}
		return c.other
	}
	t := newModelTokens()
	c.named[of] = t
	return t
}

// makeRoom forgets the model that was not used for longest, if that is long enough and this one has
// asked before. What was counted of it is gone: for Prometheus its series end.
func (c *capabilityModels) makeRoom(of model, now time.Time) bool {
	if !c.asking[of] {
		if len(c.asking) >= maxAsking {
			clear(c.asking)
		}
		c.asking[of] = true
		return false
	}
	var oldest model
	var used time.Time
	for name, t := range c.named {
		if used.IsZero() || t.used.Before(used) {
			oldest, used = name, t.used
		}
	}
	if now.Sub(used) < idleModel {
		return false
	}
	delete(c.named, oldest)
	delete(c.asking, of)
	return true
}

func newModelTokens() *tokens { return &tokens{input: newTokens(), output: newTokens()} }

// newTokens makes a histogram with the buckets that OpenTelemetry advises for
// gen_ai.client.token.usage: powers of 4 from 1 on.
func newTokens() prometheus.Histogram {
	const first, factor, buckets, native = 1, 4, 14, 1.1
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Buckets: prometheus.ExponentialBuckets(first, factor, buckets), NativeHistogramBucketFactor: native,
	})
}

// read returns a histogram as it is now.
func read(h prometheus.Histogram) *dto.Histogram {
	var m dto.Metric
	if err := h.Write(&m); err != nil { // which it never is
		return &dto.Histogram{}
	}
	return m.GetHistogram()
}

// collect sends the histograms of the capabilities that the agent still has, and forgets those of
// the others.
func (m *Models) collect(e *emitter, calls *Calls) {
	if m == nil {
		return
	}
	m.each(calls, func(capability string, of model, t *tokens) {
		e.tokens(t.input, capability, of, inputTokens)
		e.tokens(t.output, capability, of, outputTokens)
	})
}

// Counts are the tokens since the start, by capability and model, in no order.
func (m *Models) Counts(calls *Calls) (all []control.ModelTokens) {
	if m == nil {
		return nil
	}
	m.each(calls, func(capability string, of model, t *tokens) {
		input, output := read(t.input), read(t.output)
		all = append(all, control.ModelTokens{
			Capability: capability, Provider: of.provider, Model: of.name, Operation: of.operation,
			Requests: max(input.GetSampleCount(), output.GetSampleCount()), Input: uint64(input.GetSampleSum()), Output: uint64(output.GetSampleSum()),
		})
	})
	return all
}

// each calls do for the models of the capabilities that the agent still has, and forgets those of
// the others.
func (m *Models) each(calls *Calls, do func(capability string, of model, t *tokens)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for capability, models := range m.capabilities {
		if !calls.Serves(capability) {
			delete(m.capabilities, capability)
			continue
		}
		for of, t := range models.named {
			do(capability, of, t)
		}
		if models.other != nil {
			do(capability, allOthers(), models.other)
		}
	}
}

// tokens sends one histogram, unless it is empty.
func (e *emitter) tokens(h prometheus.Histogram, capability string, of model, typ string) {
	if now := read(h); now.GetSampleCount() > 0 {
		e.histogram(TokenUsage, now, of.operation, of.provider, of.name, typ, capability)
	}
}
