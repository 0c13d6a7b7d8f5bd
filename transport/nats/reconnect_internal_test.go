package nats

import (
	"net/url"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// A pool is the servers that nats.go knows. It counts failed attempts as nats.go does.
type pool []natsgo.Server

func newPool(t *testing.T, hosts ...string) pool {
	t.Helper()
	var p pool
	for _, h := range hosts {
		u, err := url.Parse("nats://" + h)
		if err != nil {
			t.Fatal(err)
		}
		p = append(p, natsgo.Server{URL: u})
	}
	return p
}

// Pauses before attempts: of agents that lose a server together none goes on to the next at
// once, and each server that is left is tried before any a second time.
func TestRoute(t *testing.T) {
	t.Parallel()
	const wait, drawn = 100 * time.Millisecond, 7 * time.Millisecond
	type attempt struct {
		host  string
		pause time.Duration
	}
	for name, test := range map[string]struct {
		hosts []string
		begin string
		up    string // the server that accepts
		want  []attempt
	}{
		"alone":          {[]string{"a"}, "a", "", []attempt{{"a", wait + drawn}, {"a", wait + drawn}}},
		"next is up":     {[]string{"a", "b", "c"}, "a", "b", []attempt{{"b", drawn}}},
		"last":           {[]string{"a", "b", "c"}, "c", "a", []attempt{{"a", drawn}}},
		"next is down":   {[]string{"a", "b", "c"}, "a", "c", []attempt{{"b", drawn}, {"c", 0}}},
		"all are down":   {[]string{"a", "b", "c"}, "b", "", []attempt{{"c", drawn}, {"a", 0}, {"b", wait + drawn}, {"c", 0}, {"a", 0}, {"b", wait + drawn}}},
		"none was known": {[]string{"a", "b"}, "gone", "a", []attempt{{"a", drawn}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := newPool(t, test.hosts...)
			r := newRoute(wait)
			r.random = func(n time.Duration) time.Duration {
				if n != wait {
					t.Errorf("draws from %v", n)
				}
				return drawn
			}
			r.begin("nats://" + test.begin)
			r.begin("") // the connection was lost before its server could be read
			for i, w := range test.want {
				s, pause := r.next(servers, natsgo.ServerInfo{})
				if got := (attempt{s.URL.Host, pause}); got != w {
					t.Fatalf("attempt %d: %v, want %v", i, got, w)
				}
				if s.Reconnects++; s.URL.Host == test.up {
					s.Reconnects = 0
				}
			}
			if test.up == "" {
				return
			}
			// The connection that was made is lost as well: it is the same anew.
			if s, pause := r.next(servers, natsgo.ServerInfo{}); pause != drawn || s.URL.Host == test.up {
				t.Errorf("after another loss: %s, %v", s.URL.Host, pause)
			}
		})
	}
}

// What is drawn is below the usual pause, and differs.
func TestRouteIsRandom(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 20 {
		servers := newPool(t, "a", "b")
		r := newRoute(time.Hour)
		r.begin("nats://a")
		_, pause := r.next(servers, natsgo.ServerInfo{})
		if pause < 0 || pause >= time.Hour {
			t.Errorf("a pause of %v", pause)
		}
		seen[pause] = true
	}
	if len(seen) < 2 {
		t.Error("the pause is always the same")
	}
}
