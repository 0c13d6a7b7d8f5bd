package rpc

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

// retryClass is the class of failures that a code belongs to, or "" for what no
// retry mends. It is a list of its own, not [Code.Retryable]: that a later call may
// succeed does not mean that this end should make it, and what the peer says of
// its errors does not decide here.
func retryClass(err *Error) string {
	switch err.Code {
	case CodeTimeout, CodeDeadlineExceeded:
		return capability.RetryTimeout
	case CodePublishFailed, CodeDisconnected, CodeNoResponders:
		return capability.RetryNetworkError
	case CodeRateLimited:
		return capability.RetryRateLimit
	case CodeBusy:
		return capability.RetryBusy
	case CodeInternal:
		return capability.RetryInternal
	case CodeHandlerError:
		if err.Retryable {
			return capability.RetryHandler
		}
	}
	return ""
}

// retries is the policy of this call. Without a word that repeating is safe
// there is one attempt.
func (c *outboundCall) retries() *capability.RetryPolicy {
	sync := c.request.Mode == "" || c.request.Mode == ModeSync
	if c.function == nil || !sync || !c.function.Idempotent && c.request.IdempotencyKey == "" {
		return nil
	}
	return c.function.RetryPolicy
}

// attempts asks until there is an answer, or a reason to give up.
func (c *outboundCall) attempts(ctx context.Context) (json.RawMessage, *Error) {
	retries := c.retries()
	backoff := policy.NewBackoff(retries)
	for {
		c.setAttemptDeadline(retries != nil)
		data, err := c.attempt(ctx)
		c.attempted++
		if err == nil || c.attempted >= backoff.MaxAttempts() || !mayRetry(retries, err) {
			return data, err
		}
		if !c.pause(ctx, max(backoff.Delay(c.attempted, rand.Float64()), err.RetryAfter())) {
			return data, err
		}
		c.failures = append(c.failures, err.Code)
		c.ids.message = c.client.ids.one()
	}
}

func mayRetry(p *capability.RetryPolicy, err *Error) bool {
	class := retryClass(err)
	return class != "" && (p.RetryOn == nil || slices.Contains(p.RetryOn, class))
}

// pause waits before another attempt. It is false when the call's time would be
// over by then: a refusal now is worth more than a timeout later.
func (c *outboundCall) pause(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil || !time.Now().Add(d).Before(c.deadline) {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// setAttemptDeadline gives an attempt what is left of the call, and no more
// than the capability's own timeout where another attempt may follow.
func (c *outboundCall) setAttemptDeadline(again bool) {
	c.until = c.deadline
	if !again || c.function.Timeout == 0 {
		return
	}
	if until := time.Now().Add(c.function.Timeout); until.Before(c.until) {
		c.until = until
	}
}

// attempt passes the limits and makes one request; where the peer has another
// contract than the gate knew, once more.
func (c *outboundCall) attempt(ctx context.Context) (json.RawMessage, *Error) {
	data, err := c.ask(ctx)
	if err == nil || c.client.cfg.Gate == nil || staleDigest(err) == "" {
		return data, err
	}
	// The skill has not run. Look at the peer's contract again, and ask once more.
	if err := c.admit(ctx, staleDigest(err)); err != nil {
		return nil, err
	}
	c.ids.message = c.client.ids.one()
	return c.ask(ctx)
}

// ask makes one request and turns its reply into the answer.
func (c *outboundCall) ask(ctx context.Context) (data json.RawMessage, err *Error) {
	if err := c.limit(ctx); err != nil {
		return nil, err
	}
	pass, err := c.pass()
	if err != nil {
		return nil, err
	}
	replied := false
	if breakers := c.client.cfg.Breakers; breakers != nil {
		start := time.Now()
		defer func() {
			now := time.Now()
			breakers.Done(pass, c.outcome(err, replied, now.Sub(start)), now)
		}()
	}
	if c.request.Mode == ModeFireAndForget {
		return nil, c.publish(ctx, envelope.Event, "")
	}
	reply, err := c.exchange(ctx)
	if err != nil {
		return nil, err
	}
	replied = true
	return c.accept(ctx, reply)
}
