package tracing

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// DefaultPeerLimit is how many traces a second one peer may have recorded: more than most
	// peers send, and few enough for the queue of spans to empty meanwhile.
	DefaultPeerLimit = 500
	// maxLimited bounds the peers that have a limit of their own at one time. Peers are those of
	// the agent's files; MCP clients may be called what they like by whoever lets them in.
	maxLimited = 1024
	// limitQuiet is for how long nothing of a peer was refused when its limit is told to be
	// over.
	limitQuiet = time.Minute
)

// A Limited is a peer of whose traces not all are recorded.
type Limited struct {
	// Peer is its name, or "" for all without a proof of theirs.
	Peer string
	// Refused counts the traces since the last one told, and Over says that it has ended.
	Refused int64
	Over    bool
}

// ParsePeerLimit reads AGENTD_TRACES_PEER_LIMIT: traces a second of each peer, or off for any
// number, which is 0.
func ParsePeerLimit(text string) (int, error) {
	switch text {
	case "":
		return DefaultPeerLimit, nil
	case "off":
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return DefaultPeerLimit, fmt.Errorf("AGENTD_TRACES_PEER_LIMIT: %.64q is neither a number of traces a second nor off; it is %d", text, DefaultPeerLimit)
	}
	return n, nil
}

// A peerLimit bounds how many traces each peer may have recorded.
type peerLimit struct {
	perSecond int
	tell      func(Limited) // not with mu

	mu     sync.Mutex
	peers  map[string]*limitedPeer // guarded by mu
	swept  time.Time               // when room was made; guarded by mu
	closed bool                    // guarded by mu
	timers sync.WaitGroup          // of the peers that are refused
}

// A limitedPeer is the limit of one peer. Its fields are guarded by the mutex of all.
type limitedPeer struct {
	tokens  *rate.Limiter
	refused int64       // since it was told
	timer   *time.Timer // nil unless it is told that some are refused
}

func newPeerLimit(perSecond int, tell func(Limited)) *peerLimit {
	return &peerLimit{perSecond: perSecond, tell: tell, peers: map[string]*limitedPeer{}}
}

// admit reports whether one more trace of a peer is recorded. The first that is not is told.
func (l *peerLimit) admit(peer string) bool {
	l.mu.Lock()
	peer, p := l.of(peer)
	if p.tokens.Allow() {
		l.mu.Unlock()
		return true
	}
	p.refused++
	begins := p.timer == nil && !l.closed
	if begins {
		p.refused = 0
		l.timers.Add(1)
		p.timer = time.AfterFunc(limitQuiet, func() { l.check(peer, p) })
	}
	l.mu.Unlock()
	if begins {
		l.tell(Limited{Peer: peer, Refused: 1})
	}
	return false
}

// of returns the limit of a peer, and by whose name it is told. Where there is no room for another
// one it is that of peers without a proof. The caller holds mu.
func (l *peerLimit) of(peer string) (string, *limitedPeer) {
	p := l.peers[peer]
	if p == nil && len(l.peers) >= maxLimited {
		l.makeRoom()
		if len(l.peers) >= maxLimited {
			peer = ""
			p = l.peers[peer]
		}
	}
	if p == nil {
		p = &limitedPeer{tokens: rate.NewLimiter(rate.Limit(l.perSecond), l.perSecond)}
		l.peers[peer] = p
	}
	return peer, p
}

// makeRoom forgets peers of whom nothing is limited: a new limit would be like theirs. It looks at
// all of them, once a second at most. The caller holds mu.
func (l *peerLimit) makeRoom() {
	now := time.Now()
	if now.Sub(l.swept) < time.Second {
		return
	}
	l.swept = now
	for name, p := range l.peers {
		if p.timer == nil && p.tokens.TokensAt(now) >= float64(l.perSecond) {
			delete(l.peers, name)
		}
	}
}

// check tells what was refused in the last while, or that nothing was. What is refused while the
// end is told begins anew: the timer is there until then, so that nobody else tells that before.
func (l *peerLimit) check(peer string, p *limitedPeer) {
	for {
		l.mu.Lock()
		n := p.refused
		p.refused = 0
		l.mu.Unlock()
		l.tell(Limited{Peer: peer, Refused: n, Over: n == 0})
		l.mu.Lock()
		switch {
		case l.closed, n == 0 && p.refused == 0:
			p.timer = nil
			l.mu.Unlock()
			l.timers.Done()
			return
		case n > 0:
			p.timer.Reset(limitQuiet)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// close ends the timers, and waits for what they tell.
func (l *peerLimit) close() {
	l.mu.Lock()
	l.closed = true
	for _, p := range l.peers {
		if p.timer != nil && p.timer.Stop() {
			p.timer = nil
			l.timers.Done()
		}
	}
	l.mu.Unlock()
	l.timers.Wait()
}
