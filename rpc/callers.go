package rpc

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// A ReplyWatcher is a transport that knows whether somebody still listens for
// replies. It is safe for concurrent use.
type ReplyWatcher interface {
	// Listening reports whether somebody listens at a reply topic. It is true where
	// that cannot be known, and takes a second at most.
	Listening(ctx context.Context, replyTopic string) bool
}

const (
	defaultWatchCallers = 5 * time.Second
	// absences is how many looks in a row must find nobody: a connection that is
	// made again is not there for a moment.
	absences = 2
	// questions is how many callers are asked for at the same time: that one is there
	// shows after a second without a word.
	questions = 64
)

// watchCallers ends the requests whose caller's process has died: nobody can cancel
// them any more, and nobody waits. It runs until the inbox stops.
func (in *Inbox) watchCallers(w ReplyWatcher, t transport.Transport) {
	ticker := time.NewTicker(in.cfg.WatchCallers)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			in.lookForCallers(w, in.longRunning(t, time.Now().Add(-in.cfg.WatchCallers)))
		case <-in.root.Done():
			return
		}
	}
}

// lookForCallers asks for each inbox once, and returns when all are answered.
func (in *Inbox) lookForCallers(w ReplyWatcher, running map[string][]*inboundCall) {
	var asking sync.WaitGroup
	slots := make(chan struct{}, questions)
	for inbox, calls := range running {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			gone := !w.Listening(in.root, inbox+".")
			for _, c := range calls {
				c.missed(gone)
			}
		})
	}
	asking.Wait()
}

// longRunning are the requests that came by t before a time, by the inbox that their
// replies go to: all calls of a process have one.
func (in *Inbox) longRunning(t transport.Transport, before time.Time) map[string][]*inboundCall {
	in.mu.Lock()
	defer in.mu.Unlock()
	var all map[string][]*inboundCall
	for _, c := range in.running {
		last := strings.LastIndexByte(c.replyTopic, '.')
		// Of other programs it is not known how they listen.
		_, agentd := c.request.Headers.Get(envelope.HeaderHops)
		if !agentd || c.transport != t || c.delivery != nil || last < 0 || c.start.After(before) {
			continue
		}
		if all == nil {
			all = map[string][]*inboundCall{}
		}
		all[c.replyTopic[:last]] = append(all[c.replyTopic[:last]], c)
	}
	return all
}

// missed counts looks that found nobody. Only the watcher of its transport calls it.
func (c *inboundCall) missed(gone bool) {
	if !gone {
		c.absent = 0
		return
	}
	if c.absent++; c.absent == absences {
		c.inbox.cfg.Logger.Info("request ended: its caller is gone", "from", c.request.From, "capability", c.request.Capability, "correlationId", c.request.CorrelationID)
		c.ctx.end(ErrCallerGone)
	}
}
