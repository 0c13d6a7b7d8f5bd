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
)

const (
	// maxScrapes bounds the scrapes at one time: each reads the whole status.
	maxScrapes = 4
	// scrapeTimeout bounds one.
	scrapeTimeout = 8 * time.Second
)

// NewHandler serves the metrics of agents and of the process that they run in: as text, as
// OpenMetrics with exemplars, or as the protocol buffers that native histograms need, whichever
// the scraper asks for.
func NewHandler(log *slog.Logger, agents ...Agent) (http.Handler, error) {
	r := prometheus.NewRegistry()
	all := []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	for _, a := range agents {
		all = append(all, newCollector(a))
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

// failed logs why a part of a scrape is missing.
type failed struct{ log *slog.Logger }

// Println implements [promhttp.Logger].
func (f failed) Println(v ...any) { f.log.Warn("metrics are missing", "reason", fmt.Sprint(v...)) }

// histogram sends a histogram.
func (e *emitter) histogram(name string, h *dto.Histogram, values ...string) {
	d := e.descs[name]
	e.to <- written{d.desc, prometheus.MakeLabelPairs(d.desc, values), h}
}
