package callee

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// A ReplyWatcher is a transport that knows whether anybody listens for replies. It
// is safe for concurrent use.
type ReplyWatcher interface {
	// Listening reports whether anybody listens at a reply topic. It returns true
	// where that cannot be known, and takes a second at most.
	Listening(ctx context.Context, replyTopic string) bool
}

const (
	defaultCallerCheck = 5 * time.Second
	// maxMisses is how many checks in a row must find nobody: a caller that is
	// reconnecting is away for a moment.
	maxMisses = 2
	// maxQuestions is how many callers are checked at the same time. A caller that
	// is gone takes a second to check, because only its silence shows it.
	maxQuestions = 64
)

// checkCallers cancels the requests whose caller's process has died: their answers
// have no reader, and no other process can cancel them. It runs until the inbox
// stops.
func (in *Inbox) checkCallers(w ReplyWatcher, t transport.Transport) {
	every := in.cfg.Limits.CallerCheck
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			in.checkOnce(w, in.longRunning(t, time.Now().Add(-every)))
		case <-in.root.Done():
			return
		}
	}
}

// checkOnce checks each reply inbox once, and returns when all checks are done.
func (in *Inbox) checkOnce(w ReplyWatcher, running map[string][]*call) {
	var checking sync.WaitGroup
	slots := make(chan struct{}, maxQuestions)
	for inbox, calls := range running {
		slots <- struct{}{}
		checking.Go(func() {
			defer func() { <-slots }()
			// All calls of one process share its inbox, so one question covers
			// them.
			gone := !w.Listening(in.root, inbox+".")
			for _, c := range calls {
				c.noteCaller(gone)
			}
		})
	}
	checking.Wait()
}

// longRunning returns the requests by t that began before a time, by the reply inbox
// of their caller's process.
func (in *Inbox) longRunning(t transport.Transport, before time.Time) map[string][]*call {
	var all map[string][]*call
	for _, c := range in.requests.list() {
		last := strings.LastIndexByte(c.replyTopic, '.')
		// Only callers that are agentd listen in a way that can be checked.
		_, agentd := c.request.Headers.Get(envelope.HeaderHops)
		if !agentd || c.transport != t || c.delivery != nil || last < 0 || c.start.After(before) {
			continue
		}
		if all == nil {
			all = map[string][]*call{}
		}
		all[c.replyTopic[:last]] = append(all[c.replyTopic[:last]], c)
	}
	return all
}

// noteCaller counts the checks in a row that found no caller. Only the checks of the
// call's transport use it, one after another.
func (c *call) noteCaller(gone bool) {
	if !gone {
		c.misses = 0
		return
	}
	if c.misses++; c.misses == maxMisses {
		c.log().Info("request ended: its caller is gone")
		c.ctx.end(ErrCallerGone)
	}
}
