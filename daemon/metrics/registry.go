package metrics

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/agentd/agentd/internal/otlp"
)

const (
	// maxScrapes bounds the scrapes at one time: each reads the whole status.
	maxScrapes = 4
	// scrapeTimeout bounds one.
	scrapeTimeout = 8 * time.Second
)

// A Process is what the metrics of one process are made of.
type Process struct {
	Agents []Agent
	// LogsLost is how many lines of the log that agents share never arrived. Nil is none. What one
	// agent alone has lost is in [Agent].Lost.
	LogsLost func() otlp.Dropped
}

// NewHandler serves the metrics of a process and of its agents: as text, as OpenMetrics with
// exemplars, or as the protocol buffers that native histograms need, whichever the scraper asks
// for.
func NewHandler(log *slog.Logger, p Process) (http.Handler, error) {
	r := prometheus.NewRegistry()
	all := []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	for _, a := range p.Agents {
		all = append(all, newCollector(a))
	}
	if p.LogsLost != nil {
		all = append(all, newSharedLog(p.LogsLost))
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: failed{log}, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout,
	}), nil
}

// A sharedLog counts the lines that never arrived of a log that agents share. Its label agent is
// empty, as for a series without one: each agent's would count them again. It implements
// [prometheus.Collector].
type sharedLog struct {
	desc described
	lost func() otlp.Dropped
}

func newSharedLog(lost func() otlp.Dropped) sharedLog {
	return sharedLog{describe("")[TelemetryLost], lost}
}

// Describe implements [prometheus.Collector].
func (l sharedLog) Describe(to chan<- *prometheus.Desc) { to <- l.desc.desc }

// Collect implements [prometheus.Collector].
func (l sharedLog) Collect(to chan<- prometheus.Metric) {
	e := &emitter{map[string]described{TelemetryLost: l.desc}, to}
	e.lost("logs", l.lost())
}

// failed logs why a part of a scrape is missing.
type failed struct{ log *slog.Logger }

// Println implements [promhttp.Logger].
func (f failed) Println(v ...any) { f.log.Warn("metrics are missing", "reason", fmt.Sprint(v...)) }

// histogram sends a histogram.
func (e *emitter) histogram(name string, h *dto.Histogram, values ...string) {
	d := e.descs[name]
	e.to <- written{d.desc, prometheus.MakeLabelPairs(d.desc, values), h}
}
