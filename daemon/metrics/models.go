package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/agentd/agentd/rpc"
)

// maxModels bounds the models of one capability that are counted by their names: skills choose
// those. What others use is counted under [Other].
const maxModels = 16

// Values of [LabelTokenType], those of OpenTelemetry's gen_ai.token.type.
const (
	inputTokens  = "input"
	outputTokens = "output"
)

// Models counts what language models have used for an agent, by the word of its skills. It is
// safe for concurrent use, and nil counts nothing.
type Models struct {
	mu           sync.Mutex
	capabilities map[string]map[model]*tokens // guarded by mu
}

// A model is what tokens are counted by, within a capability.
type model struct{ provider, name, operation string }

// tokens are the histograms of one model.
type tokens struct{ input, output prometheus.Histogram }

// NewModels returns counters of an agent.
func NewModels() *Models { return &Models{capabilities: map[string]map[model]*tokens{}} }

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
		models = map[model]*tokens{}
		m.capabilities[capability] = models
	}
	if models[of] == nil && len(models) >= maxModels {
		of = model{Other, Other, Other}
	}
	t := models[of]
	if t == nil {
		t = &tokens{input: newTokens(), output: newTokens()}
		models[of] = t
	}
	return t
}

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
	m.mu.Lock()
	defer m.mu.Unlock()
	for capability, models := range m.capabilities {
		if !calls.Serves(capability) {
			delete(m.capabilities, capability)
			continue
		}
		for of, t := range models {
			e.tokens(t.input, capability, of, inputTokens)
			e.tokens(t.output, capability, of, outputTokens)
		}
	}
}

// tokens sends one histogram, unless it is empty.
func (e *emitter) tokens(h prometheus.Histogram, capability string, of model, typ string) {
	if now := read(h); now.GetSampleCount() > 0 {
		e.histogram(TokenUsage, now, of.operation, of.provider, of.name, typ, capability)
	}
}
