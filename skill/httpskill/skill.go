package httpskill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/rpc"
)

// DefaultMaxResponseBytes bounds an answer where [Config] does not.
const DefaultMaxResponseBytes = 4 << 20

// idlePerHost is how many connections are kept for later calls.
const idlePerHost = 256

// A Config describes a [Skill]. The zero value of an optional field is its default.
type Config struct {
	// URL is where requests go. Required. Policy must let it.
	URL string
	// Method is the default POST, or another one with a body.
	Method string
	// Header is sent with each request, besides what describes the call.
	Header map[string]string
	// Policy says how the service may be reached, with which credentials. Its limits are set
	// by this package.
	Policy netguard.Policy
	// Timeout bounds a request; 0 leaves it to the deadline of the call.
	Timeout time.Duration
	// MaxResponseBytes bounds an answer. Default 4 MiB.
	MaxResponseBytes int64
	// Agent is the address of the agent that serves the calls.
	Agent string
	// Reached is called with nil for each response of the service, and with the reason for
	// each request that could not be begun. Optional.
	Reached func(error)
}

// A Skill is an [rpc.Handler] whose calls are requests to a web service. It is safe for
// concurrent use.
type Skill struct {
	cfg    Config
	client *netguard.Client
}

var _ rpc.Handler = (*Skill)(nil)

// New returns a skill. Nothing is sent before the first call.
func New(cfg Config) (*Skill, error) {
	if cfg.Method == "" {
		cfg.Method = http.MethodPost
	}
	if cfg.MaxResponseBytes <= 0 {
		cfg.MaxResponseBytes = DefaultMaxResponseBytes
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = rpc.MaxTimeout
	}
	if cfg.Reached == nil {
		cfg.Reached = func(error) {}
	}
	policy := cfg.Policy
	policy.Timeout, policy.MaxBodyBytes = rpc.MaxTimeout, cfg.MaxResponseBytes
	policy.ReturnRedirects, policy.ContentTypes, policy.IdlePerHost = true, nil, idlePerHost
	client, err := netguard.New(policy)
	if err != nil {
		return nil, fmt.Errorf("httpskill: %w", err)
	}
	return &Skill{cfg, client}, nil
}

// Close closes the connections that are kept for later calls.
func (s *Skill) Close() { s.client.Close() }

// Reach connects to the service, and sends nothing. Nil says that it can be reached.
func (s *Skill) Reach(ctx context.Context) error { return s.client.Reach(ctx, s.cfg.URL) }

// Handle implements [rpc.Handler]. When ctx ends, the request is closed.
func (s *Skill) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	body := []byte(inv.Payload)
	if ijson.IsAbsent(body) {
		body = []byte("null")
	}
	// From here on the service may have the request.
	var begun atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { begun.Store(true) }})
	resp, err := s.client.Do(traced, netguard.Request{
		Method: s.cfg.Method, URL: s.cfg.URL, Header: s.header(inv), Body: body, Timeout: s.cfg.Timeout, Once: true,
	})
	if err != nil {
		return nil, s.failed(ctx, begun.Load(), err)
	}
	s.cfg.Reached(nil)
	return outcome(resp, time.Now())
}

// header is what a service may know of its call: what the variables of a program say. What has
// nothing to say is left out.
func (s *Skill) header(inv *rpc.Invocation) map[string]string {
	h := maps.Clone(s.cfg.Header)
	if h == nil {
		h = map[string]string{}
	}
	h["Content-Type"], h["Accept"] = "application/json", "application/json"
	for name, value := range map[string]string{
		"Agentd-Caller": string(inv.From), "Agentd-Agent": s.cfg.Agent, "Agentd-Capability": inv.Capability,
		"Agentd-Message-Id": inv.MessageID, "Agentd-Correlation-Id": inv.CorrelationID,
		"Agentd-Session-Id": inv.SessionID, "Agentd-Tenant-Id": inv.TenantID,
		"Idempotency-Key": s.idempotencyKey(inv), "Agentd-Idempotency-Key": inv.IdempotencyKey, "Traceparent": inv.Traceparent, "Tracestate": inv.Tracestate,
	} {
		if value != "" {
			h[name] = value
		}
	}
	h["Agentd-Caller-Proven"] = strconv.FormatBool(inv.Proven)
	h["Agentd-Hops"] = strconv.Itoa(max(inv.Hops, 1))
	if !inv.Deadline.IsZero() {
		h["Agentd-Deadline"] = strconv.FormatInt(inv.Deadline.UnixMilli(), 10)
	}
	return h
}

// idempotencyKey stands for the request of a call at the service, "" for a call without a key. It
// differs wherever agentd tells requests apart: services, and what stands before them, look for
// this header alone, and would give the answer of one caller or tenant to another that has chosen
// the same key.
func (s *Skill) idempotencyKey(inv *rpc.Invocation) string {
	if inv.IdempotencyKey == "" {
		return ""
	}
	sum := sha256.New()
	for _, part := range []string{s.cfg.Agent, string(inv.From), inv.TenantID, inv.Capability, inv.IdempotencyKey} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// failed turns the error of a request without a whole response into that of its call. A request
// that the service may have begun is not to be repeated.
func (s *Skill) failed(ctx context.Context, begun bool, err error) error {
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		<-ctx.Done() // a connection may notice the deadline a moment before ctx does
	}
	if ctx.Err() != nil {
		return fmt.Errorf("skill: stopped: %w", context.Cause(ctx))
	}
	e := failure.As(err)
	if e == nil {
		return err
	}
	out := &rpc.SkillError{Failure: string(e.Code), Err: because(e), Retryable: !begun && e.Code.Retryable()}
	switch e.Code {
	case failure.TooLarge, failure.Unsupported:
		s.cfg.Reached(nil)
		out.Code, out.Message = rpc.CodeBadSkillOutput, "the skill's service: "+e.Text
	case failure.InvalidArgument: // what the caller says of the call fits into no header
		out.Message = e.Text
	case failure.Timeout:
		out.Message, out.Lost = fmt.Sprintf("the skill's service did not answer within %s", s.cfg.Timeout), begun
	default:
		out.Message = "the skill's service cannot be reached"
		if begun {
			out.Message, out.Lost = "the skill's service was lost while it served the call", true
		}
	}
	if !begun && out.Code == 0 && e.Code != failure.InvalidArgument {
		s.cfg.Reached(out.Err)
	}
	return out
}

// because is an error with its cause in its text, which is for the operator.
func because(e *failure.Error) error {
	if e.Err == nil {
		return errors.New(e.Text)
	}
	return fmt.Errorf("%s: %w", e.Text, e.Err)
}
