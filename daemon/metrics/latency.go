package metrics

import (
	"math"
	"sort"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The buckets of native histograms: bounds are powers of 2^(1/8), so that a quantile is off by
// 9 % at most. Values below the least one count as it, values above the largest one as that.
const (
	nativeSchema  = 3
	perOctave     = 1 << nativeSchema
	leastNative   = -20 * perOctave // about a microsecond
	largestNative = 11 * perOctave  // about half an hour
	nativeBuckets = largestNative - leastNative + 1
)

// classicBounds are the upper bounds of classic buckets, in seconds: from calls within a machine
// to those of models that think.
var classicBounds = [...]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300} //nolint:gochecknoglobals // a table of constants

// A latency is a histogram of durations. The one of client_golang allocates for each value that
// it counts natively, and takes a third of a call's budget. Each value is counted once: native and
// classic buckets, and those of the control API, are made of the same counts. It is safe for
// concurrent use.
type latency struct {
	sum    atomic.Int64 // nanoseconds
	counts [nativeBuckets]atomic.Uint64
	// above has what is in the native bucket of a classic bound, and larger than that bound.
	above     [len(classicBounds)]atomic.Uint64
	exemplars [len(classicBounds) + 1]atomic.Pointer[dto.Exemplar] // the last one of each bucket
}

func newLatency() *latency { return &latency{} }

// splits are the native buckets with a classic bound, which is counted from 1.
var splits = func() (s [nativeBuckets]uint8) { //nolint:gochecknoglobals // a table of constants
	for i, bound := range classicBounds {
		s[nativeIndex(bound)] = uint8(i) + 1
	}
	return s
}()

// observe counts a value. A clock that was set back must not make the sum, which is a counter,
// fall.
func (l *latency) observe(d time.Duration) {
	d = max(d, 0)
	v := d.Seconds()
	i := nativeIndex(v)
	if k := splits[i]; k > 0 && v > classicBounds[k-1] {
		l.above[k-1].Add(1)
	} else {
		l.counts[i].Add(1)
	}
	l.sum.Add(int64(d))
}

// observeTraced counts a value, and keeps the trace that it belongs to.
func (l *latency) observeTraced(d time.Duration, traceID string) {
	l.observe(d)
	v := max(d, 0).Seconds()
	l.exemplars[sort.SearchFloat64s(classicBounds[:], v)].Store(&dto.Exemplar{
		Label: []*dto.LabelPair{{Name: proto.String("trace_id"), Value: proto.String(traceID)}},
		Value: proto.Float64(v), Timestamp: timestamppb.Now(),
	})
}

// load returns the values in each native bucket, and how many are no larger than each classic
// bound. Both are of the same moment.
func (l *latency) load() (native [nativeBuckets]uint64, classic [len(classicBounds)]uint64) {
	var below uint64
	for i := range l.counts {
		native[i] = l.counts[i].Load()
		if k := splits[i]; k > 0 {
			classic[k-1] = below + native[i] //nolint:gosec // splits are places of classicBounds
			native[i] += l.above[k-1].Load()
		}
		below += native[i]
	}
	return native, classic
}

// upperBound is that of a native bucket, in seconds.
func upperBound(i int) float64 { return math.Exp2(float64(i+leastNative) / perOctave) }

// nativeBounds are those of one octave, between 1/2 and 1.
var nativeBounds = func() (b [perOctave]float64) { //nolint:gochecknoglobals // a table of constants
	for i := range b {
		b[i] = math.Exp2(float64(i)/perOctave - 1)
	}
	return b
}()

// nativeIndex is the place of a value's bucket.
func nativeIndex(v float64) int {
	if v <= 0 {
		return 0
	}
	fraction, exponent := math.Frexp(v)
	key := sort.SearchFloat64s(nativeBounds[:], fraction) + (exponent-1)*perOctave
	return min(max(key, leastNative), largestNative) - leastNative
}

// send emits the histogram as it is now.
func (l *latency) send(e *emitter, name string, values ...string) {
	e.histogram(name, l.read(), values...)
}

// read returns the histogram as it is now.
func (l *latency) read() *dto.Histogram {
	h := &dto.Histogram{Schema: proto.Int32(nativeSchema), ZeroThreshold: proto.Float64(0), ZeroCount: proto.Uint64(0)}
	native, classic := l.load()
	for i, bound := range classicBounds {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: proto.Float64(bound), CumulativeCount: proto.Uint64(classic[i]), Exemplar: l.exemplars[i].Load()})
	}
	largest := l.exemplars[len(classicBounds)].Load()
	h.SampleSum = proto.Float64(time.Duration(l.sum.Load()).Seconds())
	var count uint64
	var previous int64
	next := math.MinInt // the place after the last bucket of the span
	for i, n := range native {
		if n == 0 {
			continue
		}
		count += n
		if i != next || len(h.PositiveSpan) == 0 {
			offset := i - next
			if len(h.PositiveSpan) == 0 {
				offset = i + leastNative
			}
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(offset)), Length: proto.Uint32(0)}) //nolint:gosec // within the buckets
		}
		span := h.PositiveSpan[len(h.PositiveSpan)-1]
		*span.Length++
		h.PositiveDelta = append(h.PositiveDelta, int64(n)-previous) //nolint:gosec // counts of calls
		previous, next = int64(n), i+1                               //nolint:gosec // counts of calls
	}
	if len(h.PositiveSpan) == 0 { // tells an empty native histogram from a classic one
		h.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
	h.SampleCount = proto.Uint64(count)
	if largest != nil {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: proto.Float64(math.Inf(1)), CumulativeCount: proto.Uint64(count), Exemplar: largest})
	}
	return h
}

// A written histogram is a metric with its labels.
type written struct {
	desc      *prometheus.Desc
	labels    []*dto.LabelPair
	histogram *dto.Histogram
}

// Desc implements [prometheus.Metric].
func (w written) Desc() *prometheus.Desc { return w.desc }

// Write implements [prometheus.Metric].
func (w written) Write(m *dto.Metric) error {
	m.Label, m.Histogram = w.labels, w.histogram
	return nil
}
