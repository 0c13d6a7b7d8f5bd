package check

import (
	"encoding/json"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// RateLimited returns the error of a call to f of callee that q refuses.
func RateLimited(q policy.Quota, callee envelope.Address, f *capability.Capability) *rpc.Error {
	e := rpc.NewError(rpc.CodeRateLimited, nil, "rate limit exceeded: %s of %s takes %d calls in %s from one caller",
		f.Name, callee, q.Limit, f.RateLimit.Period)
	e.Details = details(quotaDetails{
		Error: "rate_limit_exceeded", Message: "Too many requests", retryDetails: retryIn(q.RetryAfter),
		Limit: q.Limit, Remaining: q.Remaining,
		ResetAt: q.ResetAt.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339),
	})
	return e
}

// RetryIn returns the details of an error that asks the caller to wait; see
// [rpc.Error.RetryAfter].
func RetryIn(d time.Duration) json.RawMessage { return details(retryIn(d)) }

// quotaDetails are the details of CodeRateLimited.
type quotaDetails struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	retryDetails
	Limit     int `json:"limit"`
	Remaining int `json:"remaining"`
	// ResetAt is when the whole quota is available again (RFC 3339), rounded up to
	// a second.
	ResetAt string `json:"reset_at"`
}

// retryDetails are the details of CodeCircuitOpen, and a part of those of
// CodeRateLimited.
type retryDetails struct {
	// RetryAfterSeconds is rounded up to the millisecond: a caller that waits this
	// long must not come too early.
	RetryAfterSeconds float64 `json:"retry_after_seconds"`
}

func retryIn(d time.Duration) retryDetails {
	return retryDetails{RetryAfterSeconds: float64((d+time.Millisecond-1)/time.Millisecond) / 1000}
}

func details(v any) json.RawMessage {
	out, _ := json.Marshal(v) // finite numbers and strings always marshal
	return out
}
