package caller

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// retry makes attempts until there is an answer, or a reason to give up.
func (c *call) retry(ctx context.Context) (json.RawMessage, *rpc.Error) {
	retries := c.retryPolicy()
	backoff := policy.NewBackoff(retries)
	for {
		c.setAttemptDeadline(retries != nil)
		data, err := c.attempt(ctx)
		c.attempted++
		if err == nil || c.attempted >= backoff.MaxAttempts() || !mayRetry(retries, err) {
			return data, err
		}
		// The peer's own retry-after, where it gave one, is a lower bound.
		// A pause that ends too late for another attempt returns the last error,
		// which says more than a timeout.
		if !c.pause(ctx, max(backoff.Delay(c.attempted, rand.Float64()), err.RetryAfter())) {
			return data, err
		}
		c.noteFailure(err)
		// A new message id, or the callee takes the attempt for a replay of the last one.
		c.ids.message = c.client.ids.One()
	}
}

// retryPolicy is the policy of this call. Nil means one attempt, which is all there
// is unless the contract or the caller's key makes repeating the call safe.
func (c *call) retryPolicy() *capability.RetryPolicy {
	sync := c.request.Mode == "" || c.request.Mode == rpc.ModeSync
	if c.capability == nil || !sync || !c.capability.Idempotent && c.request.IdempotencyKey == "" {
		return nil
	}
	return c.capability.RetryPolicy
}

// requests counts the requests that the call has led to.
func (c *call) requests() int { return c.attempted + c.resent }

// mayRetry reports whether p lets an attempt follow err. A policy without retryOn
// retries every class.
func mayRetry(p *capability.RetryPolicy, err *rpc.Error) bool {
	class := retryClass(err)
	return class != "" && (p.RetryOn == nil || slices.Contains(p.RetryOn, class))
}

// retryClass is the class of failures that a code belongs to, or "" for what a
// retry cannot mend. It is deliberately not [rpc.Code.Retryable]: that a later call
// may succeed does not mean that this end should make it, and the peer's word about
// its errors does not decide it.
func retryClass(err *rpc.Error) string {
	switch err.Code {
	case rpc.CodeTimeout, rpc.CodeDeadlineExceeded:
		return capability.RetryTimeout
	case rpc.CodePublishFailed, rpc.CodeDisconnected, rpc.CodeNoResponders:
		return capability.RetryNetworkError
	case rpc.CodeRateLimited:
		return capability.RetryRateLimit
	case rpc.CodeBusy:
		return capability.RetryBusy
	case rpc.CodeInternal:
		return capability.RetryInternal
	case rpc.CodeHandlerError:
		if err.Retryable {
			return capability.RetryHandler
		}
	}
	return ""
}

// pause waits before another attempt. It returns false when the call's time would be
// up by then: a refusal now is worth more than a timeout later.
func (c *call) pause(ctx context.Context, d time.Duration) bool {
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
