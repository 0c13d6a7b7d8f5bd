package policy_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

var epoch = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func limited(requests int, period time.Duration, burst int) *capability.Capability {
	return &capability.Capability{Name: "search", RateLimit: &capability.RateLimit{Requests: requests, Period: period, Burst: burst}}
}

// The numbers of seed 004: a hundred an hour, and the 101st is refused.
func TestRateLimitOfSeed004(t *testing.T) {
	l, c := policy.NewRateLimiter(0), limited(100, time.Hour, 100)
	for i := range 100 {
		q := l.Take(reviewer, "", c, epoch)
		if !q.Allowed || q.Remaining != 99-i || q.Limit != 100 {
			t.Fatalf("call %d: %+v", i+1, q)
		}
	}
	q := l.Take(reviewer, "", c, epoch)
	if q.Allowed || q.Remaining != 0 || q.RetryAfter != 36*time.Second || !q.ResetAt.Equal(epoch.Add(time.Hour)) {
		t.Errorf("call 101: %+v", q)
	}
	if q := l.Take(librarian, "", c, epoch); !q.Allowed {
		t.Error("another caller pays for this one")
	}
	other := *c
	other.Name = "other"
	if q := l.Take(reviewer, "", &other, epoch); !q.Allowed {
		t.Error("another capability pays for this one")
	}
	if q := l.Take(reviewer, "", c, epoch.Add(q.RetryAfter)); !q.Allowed {
		t.Errorf("after retryAfter: %+v", q)
	}
}

func TestNoRateLimit(t *testing.T) {
	l := policy.NewRateLimiter(0)
	if q := l.Take(reviewer, "", &capability.Capability{Name: "x"}, epoch); !q.Allowed || l.Len() != 0 {
		t.Errorf("%+v, %d buckets", q, l.Len())
	}
}

func TestRateLimitFollowsAReload(t *testing.T) {
	l := policy.NewRateLimiter(0)
	for range 2 {
		l.Take(reviewer, "", limited(2, time.Hour, 2), epoch)
	}
	if l.Take(reviewer, "", limited(2, time.Hour, 2), epoch).Allowed {
		t.Fatal("the old limit does not hold")
	}
	later := epoch.Add(time.Second)
	if q := l.Take(reviewer, "", limited(10, time.Second, 10), later); q.Allowed {
		t.Error("a changed limit is a fresh quota")
	}
	if q := l.Take(reviewer, "", limited(10, time.Second, 10), later.Add(time.Second)); !q.Allowed || q.Limit != 10 {
		t.Errorf("the new limit does not hold: %+v", q)
	}
}

// However calls are spread over time, no more than burst + rate*time pass, and whoever
// waits for RetryAfter passes.
func TestRateLimitBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := rapid.IntRange(1, 1000).Draw(t, "requests")
		period := time.Duration(rapid.IntRange(1, 3_600_000).Draw(t, "ms")) * time.Millisecond
		burst := rapid.IntRange(1, 50).Draw(t, "burst")
		l, c := policy.NewRateLimiter(0), limited(requests, period, burst)
		now, passed := epoch, 0
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 2_000), 1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(step) * time.Millisecond)
			q := l.Take(reviewer, "", c, now)
			if q.Allowed {
				passed++
			} else {
				if q.RetryAfter <= 0 || q.ResetAt.Before(now) {
					t.Fatalf("refused with %+v", q)
				}
				if now = now.Add(q.RetryAfter); !l.Take(reviewer, "", c, now).Allowed {
					t.Fatalf("refused after waiting for %s", q.RetryAfter)
				}
				passed++
			}
			if most := float64(burst) + now.Sub(epoch).Seconds()*float64(requests)/period.Seconds(); float64(passed) > most+0.01 {
				t.Fatalf("%d passed, and %.2f may", passed, most)
			}
		}
	})
}

// Callers with ever new names neither grow the memory nor get quotas, and do
// not take away what others have used up.
func TestRateLimiterIsBounded(t *testing.T) {
	const most = 64
	l, c := policy.NewRateLimiter(most), limited(2, time.Hour, 2)
	l.Take(reviewer, "", c, epoch)
	l.Take(reviewer, "", c, epoch)
	passed := 0
	for i := range 10_000 {
		if l.Take(envelope.Address(fmt.Sprintf("agent://a%d", i)), "", c, epoch).Allowed {
			passed++
		}
	}
	if l.Len() > most+1 {
		t.Errorf("%d buckets", l.Len())
	}
	if passed != most-1+2 {
		t.Errorf("%d of the flood passed, want one for each bucket and two of the shared one", passed)
	}
	if l.Take(reviewer, "", c, epoch).Allowed {
		t.Error("the flood made the limiter forget who had used up a quota")
	}
	// What is full again makes way.
	later := epoch.Add(2 * time.Hour)
	for i := range most {
		if !l.Take(envelope.Address(fmt.Sprintf("agent://b%d", i)), "", c, later).Allowed {
			t.Fatalf("newcomer %d is refused", i)
		}
	}
	if l.Len() > most+1 {
		t.Errorf("%d buckets", l.Len())
	}
}

// A bucket keeps the names of its caller and nothing else of the message in which they
// came, which may be as long as its sender likes.
func TestBucketsKeepNamesOnly(t *testing.T) {
	l, c := policy.NewRateLimiter(0), limited(1, time.Hour, 1)
	before := heap()
	const messages, size = 64, 1 << 20
	for i := range messages {
		id := fmt.Sprintf("%02d", i)
		text := "agent://caller" + id + "acme" + id + strings.Repeat("x", size)
		l.Take(envelope.Address(text[:16]), text[16:22], c, epoch)
	}
	if kept := heap() - before; l.Len() != messages || kept > messages*size/4 {
		t.Errorf("%d buckets keep %d bytes", l.Len(), kept)
	}
	runtime.KeepAlive(l)
}

// heap is the memory that is in use.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

func TestRefusalsAreReportedNowAndThen(t *testing.T) {
	l, c := policy.NewRateLimiter(0), limited(1, time.Hour, 1)
	l.Take(reviewer, "", c, epoch)
	var reports []int64
	for i := range 25 {
		if q := l.Take(reviewer, "", c, epoch.Add(time.Duration(i)*time.Second)); q.Report {
			reports = append(reports, q.Unreported)
		}
	}
	if fmt.Sprint(reports) != "[0 9 9]" {
		t.Errorf("reports with %v unreported", reports)
	}
}

func TestRateLimiterConcurrently(t *testing.T) {
	l, c := policy.NewRateLimiter(0), limited(50, time.Hour, 50)
	var wg sync.WaitGroup
	passed := make(chan struct{}, 1000)
	for range 10 {
		wg.Go(func() {
			for range 20 {
				if l.Take(reviewer, "", c, epoch).Allowed {
					passed <- struct{}{}
				}
			}
		})
	}
	wg.Wait()
	if len(passed) != 50 {
		t.Errorf("%d passed", len(passed))
	}
}

// Where every bucket in reach is in use, newcomers share one; each search looks at
// other buckets, so that one that is full again is found before long.
func TestRateLimiterFindsRoom(t *testing.T) {
	const most = 32
	l, slow, quick := policy.NewRateLimiter(most), limited(1, time.Hour, 1), limited(1, time.Second, 1)
	quick.Name = "quick"
	for i := range most - 1 {
		l.Take(envelope.Address(fmt.Sprintf("agent://slow%d", i)), "", slow, epoch)
	}
	l.Take(reviewer, "", quick, epoch) // the last in the order in which buckets make way
	later := epoch.Add(time.Minute)
	newcomers := 0
	for l.Len() <= most && newcomers < most {
		l.Take(envelope.Address(fmt.Sprintf("agent://new%d", newcomers)), "", slow, later)
		newcomers++
	}
	// The first newcomer made the bucket that newcomers share.
	if newcomers != 1 || l.Len() != most+1 {
		t.Fatalf("%d newcomers, %d buckets", newcomers, l.Len())
	}
	// A newcomer with a bucket of its own passes; one in the shared bucket does not.
	passed := 0
	for i := range 5 {
		if l.Take(envelope.Address(fmt.Sprintf("agent://later%d", i)), "", slow, later).Allowed {
			passed++
		}
	}
	if passed != 1 {
		t.Errorf("%d of five newcomers found the one bucket that is full again", passed)
	}
}

func TestRateLimiterOfOneBucket(t *testing.T) {
	l, c := policy.NewRateLimiter(1), limited(1, time.Hour, 1)
	for _, peer := range []envelope.Address{reviewer, librarian, stranger} {
		l.Take(peer, "", c, epoch)
	}
	if l.Len() != 2 {
		t.Errorf("%d buckets, want one and the shared one", l.Len())
	}
	// A changed limit holds in the shared bucket too.
	wide := limited(10, time.Second, 10)
	l.Take(stranger, "", wide, epoch)
	if q := l.Take(stranger, "", wide, epoch.Add(time.Second)); !q.Allowed || q.Limit != 10 {
		t.Errorf("after a reload: %+v", q)
	}
}

// A reload that changes the burst alone changes how many calls may come at once.
func TestRateLimitFollowsTheBurst(t *testing.T) {
	l := policy.NewRateLimiter(0)
	l.Take(reviewer, "", limited(60, time.Minute, 1), epoch)
	later, passed := epoch.Add(time.Hour), 0
	for range 10 {
		if l.Take(reviewer, "", limited(60, time.Minute, 1), later).Allowed {
			passed++
		}
	}
	l.Take(reviewer, "", limited(60, time.Minute, 5), later)
	later = later.Add(time.Hour)
	for range 10 {
		if l.Take(reviewer, "", limited(60, time.Minute, 5), later).Allowed {
			passed++
		}
	}
	if passed != 1+5 {
		t.Errorf("%d passed, want one with the old burst and five with the new", passed)
	}
}

func TestBackoff(t *testing.T) {
	if policy.NewBackoff(nil).MaxAttempts() != 1 {
		t.Error("without a policy there is more than one attempt")
	}
	b := policy.NewBackoff(&capability.RetryPolicy{
		MaxAttempts: 100, BackoffMultiplier: 2, InitialDelay: time.Second, MaxDelay: 10 * time.Second,
	})
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 100: 10 * time.Second} {
		if got := b.Delay(attempt, 0); got != want {
			t.Errorf("after attempt %d: %s, want %s", attempt, got, want)
		}
		for range 100 {
			if got := b.Delay(attempt, rand.Float64()); got <= want/2 || got > want {
				t.Fatalf("after attempt %d with jitter: %s", attempt, got)
			}
		}
	}
	// Jitter takes up to half of the wait away, in proportion.
	for random, want := range map[float64]time.Duration{0: time.Second, 0.5: 750 * time.Millisecond, 1: 500 * time.Millisecond} {
		if got := b.Delay(1, random); got != want {
			t.Errorf("with %v: %s, want %s", random, got, want)
		}
	}
	steep := policy.NewBackoff(&capability.RetryPolicy{MaxAttempts: 100, BackoffMultiplier: 100, InitialDelay: time.Hour, MaxDelay: 24 * time.Hour})
	if got := steep.Delay(100, 0); got != 24*time.Hour {
		t.Errorf("a steep backoff overflows: %s", got)
	}
}
