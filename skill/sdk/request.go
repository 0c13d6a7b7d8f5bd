package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// CallHeader is the HTTP header that carries [Environment.Call] to the agent.
const CallHeader = "Agentd-Call"

const (
	// maxReplyBytes bounds the agent's reply.
	maxReplyBytes = 32 << 20
	// maxWait bounds a call whose context has no deadline: the longest
	// timeout that agentd allows, and some seconds for its reply.
	maxWait = 10*time.Minute + 15*time.Second
)

// A Mode selects what the caller waits for.
type Mode string

// The modes of a call. The zero Mode is [ModeSync].
const (
	// ModeSync waits for the response.
	ModeSync Mode = "sync"
	// ModeAsync returns when the call is stored; it needs a durable transport.
	ModeAsync Mode = "async"
	// ModeFireAndForget returns when the call is published.
	ModeFireAndForget Mode = "fire-and-forget"
)

// A Request is one call of a peer's capability.
type Request struct {
	// To is the address of the peer, agent://<id>.
	To string
	// Capability is the name of the capability.
	Capability string
	// Payload is encoded as JSON; a [json.RawMessage] travels as it is.
	Payload any
	// Timeout bounds the call. 0 leaves it to the capability's own timeout.
	// It is rounded up to whole milliseconds, and the deadline of the running
	// call cuts it in any case.
	Timeout time.Duration
	// Mode is [ModeSync] when empty.
	Mode Mode
	// IdempotencyKey makes a repeated call return the first one's result.
	// Empty means none.
	IdempotencyKey string
	// SessionID is the session that the call belongs to. Within a running call, empty is
	// that of the call.
	SessionID string
	// TenantID is the tenant that the call is for. Within a running call it is that of the
	// call, and another one is refused.
	TenantID string
	// Traceparent is the W3C trace context that the call continues, such as that of a
	// span of the skill's own. Empty continues that of the running call.
	Traceparent string
	// Tracestate is what vendors of tracing have added to Traceparent. Empty is that of the
	// running call, where Traceparent is of the same trace.
	Tracestate string
	// OnProgress receives the events of the peer's skill in order. It runs on
	// the goroutine that called RequestAgent, and never after that has
	// returned. Nil does not ask for events.
	OnProgress func(ProgressEvent)
	// IdleTimeout ends the call if neither the reply nor an event arrives for
	// that long. 0 is no such timeout. It is rounded up to whole
	// milliseconds.
	IdleTimeout time.Duration
}

// A Status is the outcome of a call.
type Status string

// The statuses of a call. Everything finer is in [ResultError.Code].
const (
	StatusOK              Status = "ok"
	StatusError           Status = "error"
	StatusTimeout         Status = "timeout"
	StatusAbandoned       Status = "abandoned"
	StatusBusy            Status = "busy"
	StatusSchemaViolation Status = "schema-violation"
)

// A Result is the outcome of one call.
type Result struct {
	// Status is how the call ended.
	Status Status `json:"status"`
	// CorrelationID names the call in the logs and audit chains of both sides.
	CorrelationID string `json:"correlationId"`
	// TraceID is that of the W3C trace that the call belongs to, 32 hex digits.
	TraceID string `json:"traceId,omitempty"`
	// LatencyMs is the duration of the call in milliseconds.
	LatencyMs float64 `json:"latencyMs"`
	// ExecutionTimeMs is how long the peer's skill ran, by the peer's word; 0 where
	// it says nothing or ran no skill.
	ExecutionTimeMs float64 `json:"executionTimeMs,omitempty"`
	// CostEstimate is what the contract declares, in units of the peer's owner.
	CostEstimate map[string]float64 `json:"costEstimate,omitempty"`
	// Replayed says that the response repeats that to an earlier call with the same
	// idempotency key.
	Replayed bool `json:"replayed,omitempty"`
	// Queued says that the broker has stored a call of [ModeAsync]. Its response is
	// awaited by CorrelationID.
	Queued bool `json:"queued,omitempty"`
	// Unproven says that the call went on although it was not proven that the contracts
	// of both ends agree, and UnprovenReason why.
	Unproven       bool   `json:"unproven,omitempty"`
	UnprovenReason string `json:"unprovenReason,omitempty"`
	// Response is the callee's result as it came. On a response-side
	// violation that this side found, it is the violating value.
	Response json.RawMessage `json:"response,omitempty"`
	// SchemaSide is "request" or "response" with [StatusSchemaViolation].
	SchemaSide string `json:"schemaSide,omitempty"`
	// Violations lists what broke the schema with [StatusSchemaViolation].
	Violations []Violation `json:"violations,omitempty"`
	// ViolationsOmitted counts those beyond the agent's limits.maxViolations.
	ViolationsOmitted int `json:"violationsOmitted,omitempty"`
	// Error is set with every status but [StatusOK].
	Error *ResultError `json:"error,omitempty"`

	to, capability string
}

// A Violation is one way in which a value fails a schema.
type Violation struct {
	// Path is an RFC 6901 pointer; "" is the root.
	Path string `json:"path"`
	// Message names the rule that is violated.
	Message string `json:"message"`
}

// A ResultError describes why a call did not succeed.
type ResultError struct {
	// Code is one of agentd's codes, such as EAGENTRPC_NO_PEER.
	Code string `json:"code"`
	// Message explains it.
	Message string `json:"message"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"retryable"`
	// DetectedBy is the address of the agent whose agentd refused the call.
	DetectedBy string `json:"detectedBy,omitempty"`
	// Details is an object that depends on Code, or nil.
	Details json.RawMessage `json:"details,omitempty"`
}

// Err returns nil with [StatusOK] and a [*CallError] with any other status.
func (r *Result) Err() error {
	if r.Status == StatusOK {
		return nil
	}
	return &CallError{To: r.to, Capability: r.capability, Result: r}
}

// Decode stores the response in the value that out points to. With another
// status than [StatusOK] it returns what [Result.Err] does and leaves out alone. A
// call that is queued, and an event, have no response: that is an error too.
func (r *Result) Decode(out any) error {
	if err := r.Err(); err != nil {
		return err
	}
	if r.Response == nil {
		return fmt.Errorf("sdk: the call of %s/%s has no response, queued: %t", r.to, r.capability, r.Queued)
	}
	if err := json.Unmarshal(r.Response, out); err != nil {
		return fmt.Errorf("sdk: decode the response of %s/%s: %w", r.to, r.capability, err)
	}
	return nil
}

// RequestAgent calls a capability of a peer through the skill's agent and waits
// for the outcome. The environment comes from ctx, as [Main] sets it,
// or else from the process.
//
// A call that ran its course is a Result with a nil error, whatever its
// status; see [Result.Decode]. An error means that there is no outcome:
// [ErrNoDaemon], a [*DaemonError], a context error, or a broken connection, of
// which the call may or may not have reached the peer. RequestAgent is safe
// for concurrent use.
func RequestAgent(ctx context.Context, req Request) (*Result, error) {
	env, ok := ctx.Value(environmentKey{}).(Environment)
	if !ok {
		var err error
		if env, err = ReadEnvironment(os.Getenv); err != nil {
			return nil, err
		}
	}
	call := workerCallFrom(ctx)
	if call == nil && env.URL == "" && env.Socket == "" {
		return nil, ErrNoDaemon
	}
	body, err := requestBody(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	var reply []byte
	if call != nil {
		reply, err = call.request(ctx, body, req.OnProgress)
	} else {
		reply, err = ask(ctx, env, body, req.OnProgress)
	}
	if err != nil {
		return nil, fmt.Errorf("sdk: call %s/%s: %w", req.To, req.Capability, err)
	}
	result := &Result{to: req.To, capability: req.Capability}
	if err := json.Unmarshal(reply, result); err != nil {
		return nil, fmt.Errorf("sdk: agentd's reply to %s/%s is not a result: %w", req.To, req.Capability, err)
	}
	if result.Status == "" {
		return nil, fmt.Errorf("sdk: agentd's reply to %s/%s has no status", req.To, req.Capability)
	}
	return result, nil
}

// requestBody is the JSON that POST /v1/request takes.
func requestBody(req Request) ([]byte, error) {
	if least := min(req.Timeout, req.IdleTimeout); least < 0 {
		return nil, fmt.Errorf("sdk: a timeout of %s/%s is negative: %s", req.To, req.Capability, least)
	}
	mode := req.Mode
	if mode == "" {
		mode = ModeSync
	}
	body, err := marshal(struct {
		To             string `json:"to"`
		Capability     string `json:"capability"`
		Payload        any    `json:"payload"`
		TimeoutMs      int64  `json:"timeoutMs,omitempty"`
		Mode           Mode   `json:"mode"`
		IdempotencyKey string `json:"idempotencyKey,omitempty"`
		SessionID      string `json:"sessionId,omitempty"`
		TenantID       string `json:"tenantId,omitempty"`
		Traceparent    string `json:"traceparent,omitempty"`
		Tracestate     string `json:"tracestate,omitempty"`
		IdleTimeoutMs  int64  `json:"idleTimeoutMs,omitempty"`
	}{
		To: req.To, Capability: req.Capability, Payload: req.Payload, Mode: mode, IdempotencyKey: req.IdempotencyKey, SessionID: req.SessionID, TenantID: req.TenantID,
		Traceparent: req.Traceparent, Tracestate: req.Tracestate, TimeoutMs: wholeMs(req.Timeout), IdleTimeoutMs: wholeMs(req.IdleTimeout),
	})
	if err != nil {
		return nil, fmt.Errorf("sdk: encode the payload for %s/%s: %w", req.To, req.Capability, err)
	}
	return body, nil
}

// wholeMs returns d in milliseconds, rounded up: a timeout of half a
// millisecond must not become none.
func wholeMs(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// post sends body to a path of the API and returns the body of a 200.
func post(ctx context.Context, env Environment, path string, body []byte) ([]byte, error) {
	resp, err := open(ctx, env, http.MethodPost, path, body, "application/json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readReply(resp.Body)
}

// readReply reads one bounded body.
func readReply(r io.Reader) ([]byte, error) {
	reply, err := io.ReadAll(io.LimitReader(r, maxReplyBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read agentd's reply: %w", err)
	case len(reply) > maxReplyBytes:
		return nil, fmt.Errorf("agentd's reply is larger than %d bytes", maxReplyBytes)
	}
	return reply, nil
}

// open makes one request of the API. The caller closes the body of a 200; other
// statuses are errors.
func open(ctx context.Context, env Environment, method, path string, body []byte, accept string) (*http.Response, error) {
	// A connection per call: it costs a fraction of a millisecond within a host, and
	// leaves nothing behind for somebody to close. The transport knows no proxies,
	// whatever the environment says: one could not reach the agent, and would read the
	// token.
	transport := &http.Transport{DisableKeepAlives: true}
	base := strings.TrimSuffix(env.URL, "/")
	if base == "" {
		base = "http://agentd"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", env.Socket)
		}
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	httpReq, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		httpReq.Header.Set("Content-Type", "application/json")
	}
	httpReq.Header.Set("Accept", accept)
	if env.Call != "" {
		httpReq.Header.Set(CallHeader, env.Call)
	}
	resp, err := client.Do(httpReq)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	reply, err := readReply(resp.Body)
	if err != nil {
		return nil, err
	}
	return nil, daemonError(resp.StatusCode, reply)
}

// daemonError reads the body {"error":{"code","message"}} of a refusal.
func daemonError(status int, reply []byte) error {
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply, &body); err != nil || body.Error.Message == "" {
		return &DaemonError{HTTPStatus: status, Message: http.StatusText(status)}
	}
	return &DaemonError{HTTPStatus: status, Code: body.Error.Code, Message: body.Error.Message}
}

// IsUnreachable reports whether err means that the agent could not be
// reached at all, so that nothing of the call was sent.
func IsUnreachable(err error) bool {
	var op *net.OpError
	return errors.Is(err, ErrNoDaemon) || errors.As(err, &op) && op.Op == "dial"
}
