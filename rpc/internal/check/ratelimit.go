package check

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// RateLimited returns the error of a call to f of callee that q refuses.
func RateLimited(q policy.Quota, callee envelope.Address, f *capability.Capability) *rpc.Error {
	e := rpc.NewError(rpc.CodeRateLimited, nil,
		"rate limit exceeded: %s of %s lets each caller make %d calls at once, and allows %d more every %s; the next one is possible in %s",
		f.Name, callee, f.RateLimit.Burst, q.Limit, brief(f.RateLimit.Period), brief((q.RetryAfter + time.Millisecond - 1).Truncate(time.Millisecond)))
	// A caller that came a second later than it may would waste most of a limit of many
	// calls a second.
	e.RetryIn = q.RetryAfter
	e.Details = details(quotaDetails{
		Error: "rate_limit_exceeded", Message: "Too many requests", retryDetails: retryIn(q.RetryAfter),
		Limit: q.Limit, Remaining: q.Remaining,
		ResetAt: q.ResetAt.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339),
	})
	return e
}

// CircuitOpen returns the error of a call that a breaker does not let through.
func CircuitOpen(s policy.BreakerStatus, now time.Time) *rpc.Error {
	until := s.Until.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
	what := "is not called until " + until
	if s.State == policy.BreakerHalfOpen {
		what = "is being tried with a few calls, and with further ones at " + until
	}
	e := rpc.NewError(rpc.CodeCircuitOpen, nil, "%s of %s %s: %d of %d calls failed, the last one with %s",
		truncate.String(s.Capability, capability.MaxNameBytes), s.Peer, what, s.Failed, s.Calls, s.Cause)
	e.RetryIn = max(0, s.Until.Sub(now))
	e.Details = details(circuitDetails{
		retryDetails: retryIn(e.RetryIn), State: s.State, Until: until, Failed: s.Failed, Calls: s.Calls, Cause: s.Cause,
	})
	return e
}

// circuitDetails are the details of CodeCircuitOpen.
type circuitDetails struct {
	retryDetails
	State policy.BreakerState `json:"state"`
	// Until is when calls are let through again (RFC 3339), rounded up to a second.
	Until string `json:"until"`
	// Failed of Calls calls failed when the breaker opened, the last one with Cause.
	Failed int    `json:"failed"`
	Calls  int    `json:"calls"`
	Cause  string `json:"cause"`
}

// brief is d without the zeros that [time.Duration.String] ends with: 1m rather than
// 1m0s.
func brief(d time.Duration) string {
	text := d.String()
	if cut, ok := strings.CutSuffix(text, "m0s"); ok {
		text = cut + "m"
	}
	if cut, ok := strings.CutSuffix(text, "h0m"); ok {
		text = cut + "h"
	}
	return text
}

// Busy returns the error of a request that there is no room for, because of cause if that
// is not nil. The caller may come again after a time.
func Busy(after time.Duration, cause error, format string, args ...any) *rpc.Error {
	e := rpc.NewError(rpc.CodeBusy, cause, format, args...)
	e.RetryIn, e.Details = after, details(retryIn(after))
	return e
}

// OverflowDelay is when the caller of a request that nobody had time for may come again.
const OverflowDelay = time.Second

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

// retryDetails are the details of CodeBusy, and a part of those of CodeCircuitOpen
// and CodeRateLimited.
type retryDetails struct {
	// RetryAfterSeconds is rounded up: a caller that waits this long must not come too
	// early.
	RetryAfterSeconds int64 `json:"retry_after_seconds"`
}

func retryIn(d time.Duration) retryDetails {
	return retryDetails{RetryAfterSeconds: int64((d + time.Second - 1) / time.Second)}
}

func details(v any) json.RawMessage {
	out, _ := json.Marshal(v) // numbers and strings always marshal
	return out
}
