package nats

import (
	"math/rand/v2"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// A route chooses the server of each attempt to reconnect, and the pause before it. It takes
// the servers in turn, as nats.go does by itself. But nats.go goes to the next server at once
// when a connection is lost: when a server of a cluster dies, all of its agents would arrive
// at the others in the same moment, each with a handshake and all of its subscriptions. Here
// the first attempt waits for a part of the usual pause, drawn at random.
type route struct {
	wait   time.Duration                     // [Options].ReconnectWait
	random func(time.Duration) time.Duration // below its argument

	mu    sync.Mutex
	last  string // URL of the server that was tried last, or connected to; guarded by mu
	tried int    // attempts since the connection was lost, or since the last full pause; guarded by mu
}

func newRoute(wait time.Duration) *route {
	return &route{wait: max(wait, 1), random: rand.N[time.Duration]}
}

// begin notes the server of the first connection, or "" if that is lost already.
func (r *route) begin(url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if url != "" {
		r.last = url
	}
}

// next implements [natsgo.ReconnectToServerHandler]. nats.go calls it under its own lock,
// with at least one server.
func (r *route) next(servers []natsgo.Server, _ natsgo.ServerInfo) (*natsgo.Server, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, lost := 0, true
	for i, s := range servers {
		if s.URL.String() == r.last {
			at = (i + 1) % len(servers)
			lost = s.Reconnects == 0 // a failed attempt counts, and a connection begins anew
		}
	}
	r.last = servers[at].URL.String()
	if lost {
		r.tried = 0
	}
	r.tried++
	switch {
	case r.tried >= len(servers): // back at the server that was lost, or that failed first
		r.tried = 0
		return &servers[at], r.wait + r.random(r.wait)
	case lost:
		return &servers[at], r.random(r.wait)
	}
	return &servers[at], 0
}
