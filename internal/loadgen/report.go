package loadgen

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// StatusUnsent is the status of calls that the schedule wanted to begin, and that found
// no room among the calls in flight until the end. Their latencies are how long they had
// waited by then.
const StatusUnsent = "unsent"

// What a histogram holds, in nanoseconds. Three digits are an error of a thousandth.
const (
	shortest, longest = int64(100), int64(time.Hour)
	digits            = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, digits) }

// A Latency describes a distribution.
type Latency struct {
	Mean time.Duration `json:"mean"`
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P99  time.Duration `json:"p99"`
	P999 time.Duration `json:"p999"`
	Max  time.Duration `json:"max"`
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) }
	return Latency{Mean: time.Duration(h.Mean()), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: time.Duration(h.Max())}
}

// A Group is the calls with one outcome.
type Group struct {
	Status  string  `json:"status"`
	Code    string  `json:"code,omitempty"`
	Calls   int     `json:"calls"`
	Latency Latency `json:"latency"`
	// RetryAfter is the longest that a callee asked for.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// A Report is what a run has measured.
type Report struct {
	// Elapsed is from the beginning to the end of the last call.
	Elapsed time.Duration `json:"elapsed"`
	// Calls have ended, Due is how many the schedule wanted to begin, Unsent those of them
	// that found no room, and Unfinished those that were cut short. A closed loop has no
	// schedule.
	Calls      int `json:"calls"`
	Due        int `json:"due,omitempty"`
	Unsent     int `json:"unsent,omitempty"`
	Unfinished int `json:"unfinished,omitempty"`
	// Peak is the most calls that were in flight at once.
	Peak int `json:"peak"`
	// Latency is that of all calls, and of those that were not sent.
	Latency Latency `json:"latency"`
	// Groups are the outcomes, the most frequent first.
	Groups []Group `json:"groups"`
}

// OK is the number of calls that have succeeded.
func (r *Report) OK() int {
	for _, g := range r.Groups {
		if g.Status == "" {
			return g.Calls
		}
	}
	return 0
}

// PerSecond is the number of calls that have ended in a second.
func (r *Report) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Calls) / r.Elapsed.Seconds()
}

// A shard counts for some of the workers: one for all would be in their way, and one for
// each would fill the memory.
type shard struct {
	mu     sync.Mutex
	groups map[outcome]*group // guarded by mu
	_      [64]byte           // no other shard on its cache line
}

type outcome struct{ status, code string }

type group struct {
	latency    *hdrhistogram.Histogram
	retryAfter time.Duration
}

func newShards() []shard {
	all := make([]shard, 2*runtime.GOMAXPROCS(0))
	for i := range all {
		all[i].groups = map[outcome]*group{}
	}
	return all
}

func (s *shard) record(out Outcome, took time.Duration) {
	key := outcome{out.Status, out.Code}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[key]
	if g == nil {
		g = &group{latency: newHistogram()}
		s.groups[key] = g
	}
	g.retryAfter = max(g.retryAfter, out.RetryAfter)
	_ = g.latency.RecordValue(min(max(int64(took), 1), longest)) // fails only beyond longest
}

// report adds the shards up, when all workers have ended.
func (r *run) report(s schedule, took time.Duration) *Report {
	merged, total := map[outcome]*group{}, newHistogram()
	for i := range r.shards {
		for key, g := range r.shards[i].groups {
			if merged[key] == nil {
				merged[key] = &group{latency: newHistogram()}
			}
			merged[key].latency.Merge(g.latency)
			merged[key].retryAfter = max(merged[key].retryAfter, g.retryAfter)
			total.Merge(g.latency)
		}
	}
	report := &Report{
		Elapsed: took, Calls: int(r.ended.Load()), Due: s.due, Unsent: s.unsent, Unfinished: int(r.cut.Load()),
		Peak: int(r.peak.Load()), Latency: latencyOf(total),
	}
	for key, g := range merged {
		report.Groups = append(report.Groups, Group{
			Status: key.status, Code: key.code, Calls: int(g.latency.TotalCount()), Latency: latencyOf(g.latency), RetryAfter: g.retryAfter,
		})
	}
	slices.SortFunc(report.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	return report
}
