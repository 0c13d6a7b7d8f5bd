package metrics

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
)

// The control API has the counts of the metrics, and says which calls they are of.
func TestCountsOfPairs(t *testing.T) {
	c := NewCalls()
	c.Know(known())
	for range 3 {
		c.Observe(callee("agent://boss", "review", 0))
	}
	c.Observe(callee("agent://boss", "review", rpc.CodeRateLimited))
	c.Observe(callee("agent://nobody", "\x1b[2J", rpc.CodeNoCapability))
	c.Observe(&rpc.CallRecord{Role: rpc.RoleCaller, Peer: "agent://peer", Capability: "lint", Latency: time.Hour, Retried: []rpc.Code{rpc.CodeBusy}})
	third := control.LatencyBucket{UpTo: math.Exp2(-67.0 / 8), Calls: 4} // 3 ms are above 2^(-68/8) s
	want := []control.CallCounts{
		{Role: rpc.RoleCallee, Peer: "agent://boss", Capability: "review", Calls: 4, RateLimited: 1,
			Failed: map[string]uint64{rpc.CodeRateLimited.String(): 1}, Latencies: []control.LatencyBucket{third}},
		{Role: rpc.RoleCallee, Peer: Other, Capability: Other, Calls: 1,
			Failed: map[string]uint64{rpc.CodeNoCapability.String(): 1}, Latencies: []control.LatencyBucket{{UpTo: third.UpTo, Calls: 1}}},
		{Role: rpc.RoleCaller, Peer: "agent://peer", Capability: "lint", Calls: 1, Retries: 1, Latencies: []control.LatencyBucket{{UpTo: 2048, Calls: 1}}},
	}
	if got := c.Counts(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if peer, capability := c.Named(rpc.RoleCallee, "agent://nobody", "review"); peer != Other || capability != "review" {
		t.Errorf("a stranger's calls are those of %s, %s", peer, capability)
	}
}

// Each value is counted once. Classic buckets have what is no larger than their bounds, to the
// nanosecond, and native ones what lies between theirs.
func TestOneCountMakesAllBuckets(t *testing.T) {
	bounds := make([]time.Duration, len(classicBounds))
	for i, b := range classicBounds {
		bounds[i] = time.Duration(math.Round(b * 1e9))
	}
	rapid.Check(t, func(t *rapid.T) {
		near := rapid.Custom(func(t *rapid.T) time.Duration {
			return rapid.SampledFrom(bounds).Draw(t, "bound") + time.Duration(rapid.IntRange(-1, 1).Draw(t, "off"))
		})
		values := rapid.SliceOf(rapid.OneOf(near, rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-1, int64(2*time.Hour)).Draw(t, "value"))
		}))).Draw(t, "values")
		var l latency
		for _, v := range values {
			l.observe(v)
		}
		native, classic := l.load()
		for i, bound := range classicBounds {
			want := uint64(0)
			for _, v := range values {
				if v.Seconds() <= bound {
					want++
				}
			}
			if classic[i] != want {
				t.Fatalf("%d values up to %g s, want %d", classic[i], bound, want)
			}
		}
		var wantNative [nativeBuckets]uint64
		for _, v := range values {
			wantNative[nativeIndex(max(v, 0).Seconds())]++
		}
		if native != wantNative {
			t.Fatal("native buckets differ")
		}
	})
}
