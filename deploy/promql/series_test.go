package promql_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// interval is the time between two samples.
const interval = time.Minute

// recorded are the series of a test. The database of Prometheus would do, and takes five times as
// long to build.
type recorded []storage.Series

// recordedSeries reads the series of a test in promtool's notation.
func recordedSeries(t *testing.T, test ruleTest) (all recorded) {
	t.Helper()
	for _, s := range test.InputSeries {
		metric, values, err := parser.ParseSeriesDesc(s.Series + " " + strings.Join(strings.Fields(s.Values), " "))
		if err != nil {
			t.Fatal(err)
		}
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, value{int64(i) * interval.Milliseconds(), v.Value, v.Histogram})
			}
		}
		all = append(all, storage.NewListSeries(metric, samples))
	}
	return all
}

// Querier implements [storage.Queryable].
func (r recorded) Querier(int64, int64) (storage.Querier, error) { return r, nil }

// Select implements [storage.Querier].
func (r recorded) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	selected := &set{}
	for _, s := range r {
		fits := true
		for _, m := range matchers {
			fits = fits && m.Matches(s.Labels().Get(m.Name))
		}
		if fits {
			selected.left = append(selected.left, s)
		}
	}
	return selected
}

// A set is the series that were selected.
type set struct {
	left []storage.Series
	at   storage.Series
}

// Next implements [storage.SeriesSet].
func (s *set) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

// At implements [storage.SeriesSet].
func (s *set) At() storage.Series { return s.at }

// Err implements [storage.SeriesSet].
func (s *set) Err() error { return nil }

// Warnings implements [storage.SeriesSet].
func (s *set) Warnings() annotations.Annotations { return nil }

// LabelValues implements [storage.LabelQuerier]; the engine asks for none.
func (recorded) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements [storage.LabelQuerier]; the engine asks for none.
func (recorded) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements [storage.LabelQuerier].
func (recorded) Close() error { return nil }

// A value is one sample: a number, or a histogram.
type value struct {
	at        int64 // in milliseconds
	number    float64
	histogram *histogram.FloatHistogram
}

func (v value) T() int64                      { return v.at }
func (v value) F() float64                    { return v.number }
func (v value) H() *histogram.Histogram       { return nil }
func (v value) FH() *histogram.FloatHistogram { return v.histogram }

func (v value) Type() chunkenc.ValueType {
	if v.histogram != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// Copy implements [chunks.Sample].
func (v value) Copy() chunks.Sample {
	if v.histogram != nil {
		v.histogram = v.histogram.Copy()
	}
	return v
}
