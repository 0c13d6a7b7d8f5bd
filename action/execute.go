package action

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/schema"
)

// maxDepth bounds how deep a result without a schema may nest.
const maxDepth = 512

// Execute runs an action for c.User. The package comment has the order of the checks. A
// refusal is an [*Error], and the result carries it as well; the error is nil when the
// handler has run, whatever came of it.
func (r *Registry) Execute(ctx context.Context, id string, params json.RawMessage, c Context) (Result, error) {
	report := Execution{
		Action: truncate.String(id, capability.MaxNameBytes), User: c.User.ID, Tenant: c.User.Tenant, TraceID: c.TraceID, Started: time.Now(),
	}
	log := r.opts.Logger.With("action", report.Action, "user", report.User, "trace", report.TraceID)
	if report.Tenant != "" {
		log = log.With("tenant", report.Tenant)
	}
	if c.Logger == nil {
		c.Logger = log
	}
	e, refusal := r.admit(ctx, id, params, c.User)
	if refusal != nil {
		report.Err = refusal
		r.finish(ctx, log, report)
		return Result{Error: refusal}, refusal
	}
	params = e.parameters.Arguments(params)
	data, failure := r.attempts(ctx, log, e, params, c, &report.Attempts)
	report.Err = failure
	r.finish(ctx, log, report)
	if failure != nil {
		return Result{Error: failure}, nil
	}
	return Result{Success: true, Data: data}, nil
}

// admit makes the checks before the run. The rate limit comes last, so that no call
// counts that would have been refused anyway.
func (r *Registry) admit(ctx context.Context, id string, params json.RawMessage, u User) (*entry, *Error) {
	e := r.entry(id)
	if e == nil {
		hint := ""
		if near := spelling.DidYouMean(id, r.ids()); near != "" {
			hint = " (" + near + ")"
		}
		return nil, Errorf(NotFound, "Action %s not found%s", truncate.String(id, capability.MaxNameBytes), hint)
	}
	if missing := missing(u.Permissions, e.action.Permissions); missing != "" {
		return nil, Errorf(PermissionDenied, "Permission denied: %s needs %s", id, missing)
	}
	if report := e.parameters.CheckWithin(ctx, e.parameters.Arguments(params)); report.Verdict != schema.Valid {
		return nil, violations(InvalidArguments, "Invalid parameters of "+id, report)
	}
	now := time.Now()
	if q := r.limits.Take(envelope.Address(u.ID), u.Tenant, e.limited, now); !q.Allowed {
		return nil, rateLimited(e, q)
	}
	return e, nil
}

// missing returns the first permission that is needed and not granted, or "".
func missing(granted, needed []string) string {
	for _, need := range needed {
		has := slices.ContainsFunc(granted, func(pattern string) bool {
			if pattern == need {
				return true
			}
			g, err := policy.ParseGlob(pattern)
			return err == nil && g.Match(need)
		})
		if !has {
			return need
		}
	}
	return ""
}

// rateLimited is the refusal of a user whose limit is used up.
func rateLimited(e *entry, q policy.Quota) *Error {
	seconds := int64((q.RetryAfter + time.Second - 1) / time.Second)
	out := Errorf(RateLimitExceeded, "Rate limit exceeded: %s may be executed %d times in %s; the next time in %d s",
		e.action.ID, q.Limit, e.action.RateLimit.Window, seconds)
	out.Details, _ = json.Marshal(RateLimitBody{ // numbers and strings always marshal
		Error: RateLimitExceeded, Message: "Too many requests", RetryAfterSeconds: seconds, Limit: q.Limit, Remaining: q.Remaining,
		ResetAt: q.ResetAt.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339),
	})
	return out
}

// attempts runs the handler until it succeeds, fails for good, or has used up the time or
// the attempts. Only an idempotent action has more than one.
func (r *Registry) attempts(ctx context.Context, log *slog.Logger, e *entry, params json.RawMessage, c Context, n *int) (json.RawMessage, *Error) {
	ctx, cancel := context.WithTimeout(ctx, e.action.timeout())
	defer cancel()
	backoff := policy.NewBackoff(nil)
	if e.action.Idempotent {
		backoff = policy.NewBackoff(r.opts.Retry)
	}
	for *n = 1; ; *n++ {
		data, failure := r.run(ctx, log, e, params, c)
		if failure == nil || !failure.Retryable || *n >= backoff.MaxAttempts() {
			return data, failure
		}
		wait := time.NewTimer(backoff.Delay(*n, rand.Float64())) //nolint:gosec // spreads retries, and protects nothing
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil, failure
		}
	}
}

// run runs the handler once and checks what it returns.
func (r *Registry) run(ctx context.Context, log *slog.Logger, e *entry, params json.RawMessage, c Context) (data json.RawMessage, failure *Error) {
	data, err := e.call(ctx, log, slices.Clone(params), c)
	if err != nil {
		return nil, shown(ctx, e.action.ID, err)
	}
	if len(data) > r.opts.MaxResultBytes {
		return nil, Errorf(TooLarge, "the result of %s has more than %d bytes", e.action.ID, r.opts.MaxResultBytes)
	}
	if err := ijson.Check(data, maxDepth); err != nil {
		return nil, Errorf(BadResult, "the result of %s is not one JSON value", e.action.ID).Because(err)
	}
	if e.returns == nil {
		return data, nil
	}
	if report := e.returns.CheckWithin(ctx, data); report.Verdict != schema.Valid {
		// What is wrong is for the log: paths and names are the handler's.
		return nil, Errorf(BadResult, "%s did not return what it says it returns", e.action.ID).
			Because(violations(BadResult, "the result breaks the schema of returns", report))
	}
	return data, nil
}

// call calls the handler. Its panic is an error like any other, whose text the caller
// does not learn.
func (e *entry) call(ctx context.Context, log *slog.Logger, params json.RawMessage, c Context) (data json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("the handler of an action panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			data, err = nil, fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	return e.handler(ctx, params, c)
}

// finish logs a failure with its cause and reports the execution.
func (r *Registry) finish(ctx context.Context, log *slog.Logger, report Execution) {
	report.Took = time.Since(report.Started)
	if f := report.Err; f != nil {
		level, attributes := slog.LevelWarn, []any{"code", f.Code, "message", strings.ToValidUTF8(f.Message, ""), "attempts", report.Attempts, "took", report.Took}
		if f.cause != nil {
			attributes = append(attributes, "cause", f.cause.Error())
		}
		if f.Code == Internal || f.Code == BadResult {
			level = slog.LevelError // a fault of the handler, not of its caller
		}
		log.Log(ctx, level, "an action was not executed with success", attributes...)
	}
	if r.opts.Record != nil {
		r.opts.Record(ctx, report)
	}
}
