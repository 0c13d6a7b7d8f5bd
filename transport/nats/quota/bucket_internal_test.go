package quota

import (
	"log/slog"
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/policy"
)

var epoch = time.Unix(1_800_000_000, 0)

// A slowBucket is a token bucket as textbooks have it: a count that grows with time.
type slowBucket struct {
	rate, burst, tokens float64
	at                  time.Time
}

func (s *slowBucket) advance(now time.Time) {
	s.tokens = min(s.burst, s.tokens+now.Sub(s.at).Seconds()*s.rate)
	s.at = now
}

// One time says as much as a count of tokens that is kept up to date.
func TestBucketIsATokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := &capability.RateLimit{
			Requests: rapid.IntRange(1, 1000).Draw(t, "requests"), Burst: rapid.IntRange(1, 1000).Draw(t, "burst"),
			Period: time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(24*time.Hour)).Draw(t, "period")),
		}
		b, now, full := newTokenBucket(limit), epoch, time.Time{}
		slow := &slowBucket{rate: float64(limit.Requests) / limit.Period.Seconds(), burst: float64(limit.Burst), tokens: float64(limit.Burst), at: now}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 2*int64(limit.Period)).Draw(t, "pause")))
			slow.advance(now)
			want := rapid.IntRange(1, 10).Draw(t, "want")
			granted, next := b.take(full, now, want)
			// Each take rounds up to a nanosecond, so ours may be a token behind at an edge.
			if most := min(float64(want), slow.tokens); float64(granted) > most+1e-6 || float64(granted) < math.Floor(most-1e-3) {
				t.Fatalf("granted %d of %d, and the count is %v", granted, want, slow.tokens)
			}
			if granted == 0 && !next.Equal(full) {
				t.Fatalf("nothing was granted, and the bucket is full at %s instead of %s", next, full)
			}
			if left := b.tokens(next, now); granted > 0 && left > limit.Burst-granted {
				t.Fatalf("%d of a burst of %d were granted, and %d are left", granted, limit.Burst, left)
			}
			full, slow.tokens = next, slow.tokens-float64(granted)
		}
	})
}

// Whoever comes when the next token is due gets one, and not long before.
func TestNextToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := &capability.RateLimit{
			Requests: rapid.IntRange(1, 1000).Draw(t, "requests"), Burst: rapid.IntRange(1, 1000).Draw(t, "burst"),
			Period: time.Duration(rapid.Int64Range(int64(time.Second), int64(24*time.Hour)).Draw(t, "period")),
		}
		b := newTokenBucket(limit)
		_, full := b.take(time.Time{}, epoch, limit.Burst)
		due := b.nextToken(full)
		if n := b.tokens(full, due.Add(time.Microsecond)); n != 1 {
			t.Errorf("%d tokens when the first is due", n)
		}
		if early := due.Add(-limit.Period / time.Duration(limit.Requests) / 100).Add(-time.Microsecond); b.tokens(full, early) != 0 {
			t.Errorf("a token before it is due")
		}
	})
}

// No limit, however slow, makes a time overflow: that would be a full bucket.
func TestSlowLimitsDoNotOverflow(t *testing.T) {
	b := newTokenBucket(&capability.RateLimit{Requests: 1, Burst: 1_000_000, Period: 24 * 365 * time.Hour})
	granted, full := b.take(time.Time{}, epoch, 1_000_000)
	if granted != 1_000_000 || !full.After(epoch) {
		t.Errorf("%d granted, full at %s", granted, full)
	}
}

// A lease grows while its tokens are used in time, shrinks when they expire, and stays
// within its bounds.
func TestLeaseSize(t *testing.T) {
	for name, test := range map[string]struct {
		burst int
		most  int
	}{"a small burst": {burst: 8, most: 1}, "a burst": {burst: 160, most: 10}, "a large burst": {burst: 1_000_000, most: maxLease}} {
		t.Run(name, func(t *testing.T) {
			l, now := newLease(), epoch
			l.setLimit(&capability.RateLimit{Requests: 1000, Burst: test.burst, Period: time.Second})
			if size := l.resize(now); size != 1 {
				t.Errorf("the first lease has %d tokens", size)
			}
			use := func(left int) int {
				l.fill(10, state{}, now)
				l.tokens = left
				return l.resize(now)
			}
			size := 1
			for range 10 {
				next := use(0)
				if next > test.most || next < size {
					t.Fatalf("%d tokens after %d, at most %d", next, size, test.most)
				}
				size = next
			}
			if size != test.most {
				t.Errorf("all tokens were used, and the lease grew to %d, want %d", size, test.most)
			}
			for range 10 {
				next := use(3)
				if next > max(size/2, 1) || next < 1 {
					t.Fatalf("%d tokens after %d of which some expired", next, size)
				}
				size = next
			}
			l.fill(10, state{}, now)
			l.tokens, now = 0, now.Add(2*leaseTime)
			if next := l.resize(now); next != size {
				t.Errorf("nobody called for a while: %d tokens after %d", next, size)
			}
		})
	}
}

// Tokens of an old limit do not count under a new one.
func TestLeaseUnderANewLimit(t *testing.T) {
	l := newLease()
	old := &capability.RateLimit{Requests: 10, Burst: 100, Period: time.Second}
	l.setLimit(old)
	l.fill(5, state{}, epoch)
	l.setLimit(old)
	if !l.canDecide(epoch) || !l.take(epoch).Allowed {
		t.Error("the same limit again took the tokens away")
	}
	l.setLimit(&capability.RateLimit{Requests: 1, Burst: 1, Period: time.Hour})
	if l.canDecide(epoch) {
		t.Error("the tokens of the old limit still count")
	}
}

// Only one at a time has a lease, and nobody waits for it longer than asked.
func TestLeaseLock(t *testing.T) {
	l := newLease()
	if !l.lock(0) || l.lock(0) || l.lock(time.Millisecond) {
		t.Error("two have the lease")
	}
	got := make(chan bool)
	go func() { got <- l.lock(20 * time.Second) }()
	l.unlock()
	if !<-got {
		t.Error("the lease was free, and nobody got it")
	}
}

// Two callers never share a key, whatever their names, and every key is legal.
func TestKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9_=/.\-\x00é ]{0,6}`)
		a, b := [2]string{name.Draw(t, "a"), name.Draw(t, "a2")}, [2]string{name.Draw(t, "b"), name.Draw(t, "b2")}
		key := func(n [2]string) string { return escape(n[0]) + "/" + escape(n[1]) }
		if (a == b) != (key(a) == key(b)) {
			t.Fatalf("%q and %q have the keys %s and %s", a, b, key(a), key(b))
		}
		for _, c := range escape(a[0]) {
			if c != '=' && c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
				t.Fatalf("the key of %q has %q", a[0], c)
			}
		}
	})
	// Replicas that know no tenants count with those that do.
	if got := keyOf("agent://team.notes", "", "review-pr"); got != "team=2Enotes/review-pr" {
		t.Errorf("key %s", got)
	}
	if got := keyOf("agent://team.notes", "a.b", "review-pr"); got != "team=2Enotes/review-pr/a=2Eb" {
		t.Errorf("key %s of a tenant", got)
	}
}

// A table full of leases that are in use takes no more callers: they are limited
// locally. Leases that hold nothing make room.
func TestFullTableOfLeases(t *testing.T) {
	l := New(Options{Local: policy.NewRateLimiter(0), Logger: slog.New(slog.DiscardHandler)})
	for i := range policy.DefaultMaxBuckets {
		busy := l.lease(strconv.Itoa(i), epoch)
		busy.fill(1, state{}, epoch)
	}
	c := &capability.Capability{Name: "c", RateLimit: &capability.RateLimit{Requests: 1, Burst: 1, Period: time.Hour, Shared: true}}
	if !l.Take("agent://late", "", c, epoch).Allowed || l.Take("agent://late", "", c, epoch).Allowed {
		t.Error("a caller without a lease is not limited locally")
	}
	if later := epoch.Add(2 * leaseTime); l.lease("late", later) == nil {
		t.Error("the tokens of all leases have expired, and none made room")
	}
	if n := len(l.leases); n != policy.DefaultMaxBuckets {
		t.Errorf("%d leases", n)
	}
}
