package quota_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/quota"
)

const withJetStream = "jetstream {}"

var start = time.Unix(1_800_000_000, 0)

func limited(requests, burst int, period time.Duration) *capability.Capability {
	return &capability.Capability{Name: "review-pr", RateLimit: &capability.RateLimit{
		Requests: requests, Burst: burst, Period: period, Shared: true,
	}}
}

func jetStream(t testing.TB, s *natstest.Server) jetstream.JetStream {
	t.Helper()
	c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{s.URL()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	js, err := c.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// replica is a limiter of its own, over a connection of its own.
func replica(t testing.TB, s *natstest.Server, log *slog.Logger) *quota.Limiter {
	t.Helper()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return quota.New(quota.Options{
		JetStream: jetStream(t, s), Bucket: "limits", Local: policy.NewRateLimiter(0), Timeout: 10 * time.Second, Logger: log,
	})
}

// Replicas that are asked at the same time allow the limit together, and each
// caller has its own.
func TestReplicasCountTogether(t *testing.T) {
	s := natstest.Run(t, withJetStream)
	c := limited(100, 100, time.Hour)
	var allowed [2]atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		l := replica(t, s, nil)
		for i := range 8 {
			wg.Go(func() {
				caller := i % 2
				for range 40 {
					if q := l.Take([]envelope.Address{"agent://alice", "agent://bob"}[caller], "", c, start); q.Allowed {
						allowed[caller].Add(1)
					} else if q.RetryAfter <= 0 || q.Limit != 100 || !q.ResetAt.After(start) {
						t.Errorf("refused with %+v", q)
					}
				}
			})
		}
	}
	wg.Wait()
	for i := range allowed {
		// What a replica has leased and not used is lost: at most a sixteenth of the burst each.
		if n := allowed[i].Load(); n > 100 || n < 100-3*6 {
			t.Errorf("caller %d: %d calls were allowed of 100", i, n)
		}
	}
}

// However calls come in at the replicas, no window has more than a burst and
// what has come in since; and whoever comes back after RetryAfter is served.
func TestNeverMoreThanTheLimit(t *testing.T) {
	s := natstest.Run(t, withJetStream)
	replicas := []*quota.Limiter{replica(t, s, nil), replica(t, s, nil)}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		c := limited(rapid.IntRange(1, 50).Draw(t, "requests"), rapid.IntRange(1, 100).Draw(t, "burst"), time.Second)
		peer := envelope.Address("agent://caller" + strings.Repeat("x", run%50) + "." + time.Duration(run).String())
		now := start
		var taken []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			q := rapid.SampledFrom(replicas).Draw(t, "replica").Take(peer, "", c, now)
			if q.Allowed {
				taken = append(taken, now)
				continue
			}
			now = now.Add(q.RetryAfter)
			if q := replicas[0].Take(peer, "", c, now); !q.Allowed {
				// The other replica may have a lease on the token; it has a second to use it.
				now = now.Add(time.Second + q.RetryAfter)
				if q := replicas[0].Take(peer, "", c, now); !q.Allowed {
					t.Fatalf("refused again after %s: %+v", q.RetryAfter, q)
				}
			}
			taken = append(taken, now)
		}
		for i, from := range taken {
			for j := i; j < len(taken); j++ {
				most := float64(c.RateLimit.Burst) + taken[j].Sub(from).Seconds()*float64(c.RateLimit.Requests) + 1
				// A lease moves up to a second's calls from one window to the next.
				most += float64(c.RateLimit.Burst) / 16 * float64(len(replicas))
				if float64(j-i+1) > most {
					t.Fatalf("%d calls from %s to %s", j-i+1, from, taken[j])
				}
			}
		}
	})
}

// Without the bucket each replica counts for itself, and says so once; when the
// bucket is there again, so is the common count.
func TestBucketAway(t *testing.T) {
	s := natstest.Run(t, "") // no JetStream
	var text bytes.Buffer
	l := replica(t, s, slog.New(slog.NewTextHandler(&text, nil)))
	c := limited(3, 3, time.Hour)
	allowed := 0
	for range 10 {
		if l.Take("agent://alice", "", c, start).Allowed {
			allowed++
		}
	}
	if allowed != 3 || strings.Count(text.String(), "each replica counts for itself") != 1 || !strings.Contains(text.String(), "bucket=limits") {
		t.Errorf("%d allowed; %s", allowed, text.String())
	}
}

func TestServerRestart(t *testing.T) {
	s := natstest.Run(t, withJetStream)
	var text bytes.Buffer
	l := quota.New(quota.Options{
		JetStream: jetStream(t, s), Bucket: "limits", Local: policy.NewRateLimiter(0), Timeout: 200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&text, nil)),
	})
	c := limited(1000, 1, time.Second) // no leases, and a token a millisecond
	if !l.Take("agent://alice", "", c, start).Allowed || text.Len() > 0 {
		t.Fatal(text.String())
	}
	s.Stop()
	if q := l.Take("agent://alice", "", c, start.Add(time.Second)); !q.Allowed || !strings.Contains(text.String(), "counts for itself") {
		t.Fatalf("%+v: %s", q, text.String())
	}
	s.Start()
	deadline := time.Now().Add(20 * time.Second)
	for i := 1; !strings.Contains(text.String(), "shared again"); i++ {
		if time.Now().After(deadline) {
			t.Fatal(text.String())
		}
		l.Take("agent://alice", "", c, start.Add(time.Duration(i)*time.Minute)) // each beyond the time of rest
	}
}

// However many calls wait for a server that does not answer, each waits for a short
// while.
func TestWaitsAreBounded(t *testing.T) {
	s := natstest.Run(t, withJetStream)
	proxy := natstest.NewProxy(t, s.Addr())
	c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{proxy.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	js, err := c.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	const timeout = 200 * time.Millisecond
	l := quota.New(quota.Options{JetStream: js, Bucket: "limits", Local: policy.NewRateLimiter(0), Timeout: timeout, Logger: slog.New(slog.DiscardHandler)})
	limit := limited(1000, 1000, time.Second)
	l.Take("agent://alice", "", limit, time.Now())
	proxy.Stall()
	defer proxy.Resume()
	begun := time.Now()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { l.Take("agent://alice", "", limit, begun.Add(2*time.Second)) })
	}
	wg.Wait()
	if took := time.Since(begun); took > 50*timeout { // one after the other it were a hundred
		t.Errorf("100 calls waited %s", took)
	}
}

// What is not shared never asks the server.
func TestOnlySharedLimitsAreShared(t *testing.T) {
	l := quota.New(quota.Options{JetStream: nil, Bucket: "limits", Local: policy.NewRateLimiter(0), Logger: slog.New(slog.DiscardHandler)})
	c := limited(1, 1, time.Hour)
	c.RateLimit.Shared = false
	if !l.Take("agent://alice", "", c, start).Allowed || l.Take("agent://alice", "", c, start).Allowed {
		t.Error("the local limit does not hold")
	}
	if q := l.Take("agent://alice", "", &capability.Capability{}, start); !q.Allowed {
		t.Error("no limit refuses")
	}
}

// A refusal is worth a record once in a while, as with local limits.
func TestRefusalsAreReportedNowAndThen(t *testing.T) {
	s := natstest.Run(t, withJetStream)
	l, c := replica(t, s, nil), limited(1, 1, time.Hour)
	l.Take("agent://alice", "", c, start)
	var reports []int64
	for i := range 25 {
		if q := l.Take("agent://alice", "", c, start.Add(time.Duration(i)*time.Second)); q.Report {
			reports = append(reports, q.Unreported)
		}
	}
	if len(reports) != 3 || reports[0] != 0 || reports[1] != 9 || reports[2] != 9 {
		t.Errorf("reports %v", reports)
	}
}

// A lease makes most calls as cheap as with a local limit.
func BenchmarkTake(b *testing.B) {
	c := limited(1_000_000_000, 1_000_000_000, time.Second)
	local := policy.NewRateLimiter(0)
	b.Run("local", func(b *testing.B) {
		for b.Loop() {
			local.Take("agent://alice", "", c, time.Now())
		}
	})
	l := replica(b, natstest.Run(b, withJetStream), nil)
	b.Run("shared", func(b *testing.B) {
		for b.Loop() {
			if !l.Take("agent://alice", "", c, time.Now()).Allowed {
				b.Fatal("refused")
			}
		}
	})
}
