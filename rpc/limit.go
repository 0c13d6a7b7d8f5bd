package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

// A Limiter counts calls over time. It is on the path of every call, at both
// ends, and safe for concurrent use; a [policy.RateLimiter] is one.
type Limiter interface {
	// Take is about a call to c and the agent at the other end: the callee where
	// a [Client] asks, the caller where an [Inbox] does.
	Take(peer envelope.Address, c *capability.Capability, now time.Time) policy.Quota
}

// limit asks the rate limit of the caller's end. A peer whose contract is not
// known has told no limit.
func (c *outboundCall) limit(ctx context.Context) *Error {
	if c.client.cfg.Limiter == nil || c.function == nil {
		return nil
	}
	quota := c.client.cfg.Limiter.Take(c.peer.Address, c.function, time.Now())
	if quota.Allowed {
		return nil
	}
	if quota.Report {
		r := c.refusal(CodeRateLimited)
		r.Quota = quota
		if err := recordRefusal(ctx, c.client.cfg.Refusals, r); err != nil {
			return err
		}
	}
	return rateLimited(quota, c.peer.Address, c.function)
}

// limit asks the rate limit of the callee's end.
func (c *inboundCall) limit() *Error {
	if c.inbox.cfg.Limiter == nil {
		return nil
	}
	quota := c.inbox.cfg.Limiter.Take(c.request.From, c.function, time.Now())
	if quota.Allowed {
		return nil
	}
	if quota.Report {
		r := c.refusal(CodeRateLimited)
		r.Quota = quota
		if err := recordRefusal(&c.ctx, c.inbox.cfg.Refusals, r); err != nil {
			return err
		}
	}
	return rateLimited(quota, c.inbox.cfg.Self, c.function)
}

func rateLimited(q policy.Quota, callee envelope.Address, f *capability.Capability) *Error {
	e := newError(CodeRateLimited, nil, "rate limit exceeded: %s of %s takes %d calls in %s from one caller",
		f.Name, callee, q.Limit, f.RateLimit.Period)
	e.Details = marshalDetails(quotaDetails{
		Error: "rate_limit_exceeded", Message: "Too many requests", retryDetails: retryIn(q.RetryAfter),
		Limit: q.Limit, Remaining: q.Remaining,
		ResetAt: q.ResetAt.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339),
	})
	return e
}

// quotaDetails are the Details of CodeRateLimited.
type quotaDetails struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	retryDetails
	Limit     int `json:"limit"`
	Remaining int `json:"remaining"`
	// ResetAt is when the quota is whole again (RFC 3339), rounded up to a second.
	ResetAt string `json:"reset_at"`
}

// retryDetails are the Details of CodeCircuitOpen, and part of those of CodeRateLimited.
type retryDetails struct {
	// RetryAfterSeconds is rounded up to the millisecond.
	RetryAfterSeconds float64 `json:"retry_after_seconds"`
}

func retryIn(d time.Duration) retryDetails {
	return retryDetails{RetryAfterSeconds: float64((d+time.Millisecond-1)/time.Millisecond) / 1000}
}

func marshalDetails(v any) json.RawMessage {
	out, _ := json.Marshal(v) // finite numbers and strings always marshal
	return out
}

// RetryAfter is how long the peer, or this end, asks to be left alone; 0 where
// the error does not say.
func (e *Error) RetryAfter() time.Duration {
	var d retryDetails
	if e.Code != CodeRateLimited && e.Code != CodeCircuitOpen || json.Unmarshal(e.Details, &d) != nil {
		return 0
	}
	return time.Duration(min(max(d.RetryAfterSeconds, 0), MaxTimeout.Seconds()) * float64(time.Second))
}

// pass asks the peer's circuit breaker.
func (c *outboundCall) pass() (policy.Pass, *Error) {
	if c.client.cfg.Breakers == nil {
		return policy.Pass{}, nil
	}
	pass, after, ok := c.client.cfg.Breakers.Pass(c.peer.Address, time.Now())
	if ok {
		return pass, nil
	}
	e := newError(CodeCircuitOpen, nil, "%s failed too often, and is left alone for %s", c.peer.Address, after.Round(time.Millisecond))
	e.Details = marshalDetails(retryIn(after))
	return policy.Pass{}, e
}

// fairChance is how long a peer must have had before a timeout says something
// about it.
const fairChance = time.Second

// outcome is what an attempt says about the peer's health. That nobody
// receives its requests is no failure in this sense: the broker says so at
// once, and a breaker would only keep the callers away once it is back.
func (c *outboundCall) outcome(err *Error, replied bool, took time.Duration) policy.Outcome {
	switch {
	case err == nil:
		return policy.Succeeded
	case err.Code == CodeTimeout, err.Code == CodeDeadlineExceeded && replied:
		if took < fairChance {
			return policy.Inconclusive
		}
		return policy.Failed
	case replied && err.Code == CodeInternal && err.DetectedBy == c.peer.Address:
		return policy.Failed
	case replied:
		return policy.Succeeded
	}
	return policy.Inconclusive
}

// queueFactor is how many requests may wait for each that runs.
const queueFactor = 4

// slots bound how many requests of one capability run at once, and how many wait.
type slots struct {
	running int             // guarded by Inbox.mu
	waiting []chan struct{} // in order of arrival; closed when it may run; guarded by Inbox.mu
}

// occupy waits for a slot of the capability's concurrency. release must be
// called when err is nil.
func (c *inboundCall) occupy() (release func(), err *Error) {
	limit := c.function.Concurrency
	if limit == 0 {
		return func() {}, nil
	}
	in := c.inbox
	in.mu.Lock()
	s := in.slots[c.function.Name]
	if s == nil {
		s = &slots{}
		in.slots[c.function.Name] = s
	}
	release = func() { in.release(s, limit) }
	if s.running < limit {
		s.running++
		in.mu.Unlock()
		return release, nil
	}
	if len(s.waiting) >= queueFactor*limit {
		in.mu.Unlock()
		return nil, newError(CodeBusy, nil, "%s runs %d requests of %s, and %d more wait", in.cfg.Self, limit, c.function.Name, queueFactor*limit)
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	in.mu.Unlock()
	select {
	case <-turn:
		return release, nil
	case <-c.ctx.Done():
		in.leave(s, turn, limit)
		return nil, c.interrupted("the request waited for its turn until the deadline")
	}
}

// release gives a slot to who has waited longest.
func (in *Inbox) release(s *slots, limit int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.running--
	for s.running < limit && len(s.waiting) > 0 {
		s.running++
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
	}
}

// leave takes a request out of the queue that waits no longer.
func (in *Inbox) leave(s *slots, turn chan struct{}, limit int) {
	in.mu.Lock()
	for i, w := range s.waiting {
		if w == turn {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			in.mu.Unlock()
			return
		}
	}
	in.mu.Unlock()
	in.release(s, limit) // its turn came at the same moment
}

// interrupted says why a request that was underway is given up. late is the
// message when the deadline is the reason; nil means that it is not interrupted.
func (c *inboundCall) interrupted(late string) *Error {
	switch cause := context.Cause(&c.ctx); {
	case errors.Is(cause, ErrCallerCancelled):
		return newError(CodeCancelled, cause, "the caller cancelled the call")
	case errors.Is(cause, ErrCallerGone):
		return newError(CodeCancelled, cause, "the caller is gone")
	case errors.Is(cause, ErrShutdown):
		return newError(CodeBusy, cause, "%s shut down before the skill had finished", c.inbox.cfg.Self)
	case errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		return newError(CodeDeadlineExceeded, cause, "%s", late)
	}
	return nil
}
