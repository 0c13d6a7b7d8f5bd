package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// HeaderCall names the running call that a nested request belongs to.
const HeaderCall = "Agentd-Call"

// HeaderTraceparent is the W3C trace context of the program that makes a request. The
// call continues it unless the request names a trace itself.
const HeaderTraceparent = "traceparent"

// MaxRequestBytes bounds the body of a request. The agent's own limit on payloads
// is smaller, and is applied by its [Caller].
const MaxRequestBytes = 32 << 20

// A Caller makes calls.
type Caller interface {
	RequestAgent(context.Context, rpc.Request) (*rpc.Result, error)
}

// An Agent is what the API gives access to.
type Agent struct {
	// Caller makes the calls of POST /v1/request.
	Caller Caller
	// Calls are the running calls. Required for agents whose skills are processes.
	Calls *Calls
	// Capabilities returns the published form as JSON. It is nil for an agent that
	// offers none.
	Capabilities func() ([]byte, error)
	// Ready returns nil while the agent accepts calls, and otherwise why it does not.
	Ready func() error
	// Approvals are the calls that wait for a person. It may be nil.
	Approvals Approvals
	// Warnings returns what somebody should look at although the agent accepts calls.
	// It may be nil.
	Warnings func() []string
	// Witnesses give access to checkpoints that witnesses hold. It may be nil.
	Witnesses Witnesses
	// Status returns the agent at a glance. It may be nil.
	Status func() Status
	// VerifyPeers asks peers what they serve. It may be nil.
	VerifyPeers func(ctx context.Context, only []envelope.Address) []PeerStatus
	// ResetBreakers closes circuit breakers, see [Client.ResetBreakers]. It may be nil.
	ResetBreakers func(ctx context.Context, peer envelope.Address, capability string) ([]Breaker, error)
	// Durable are the calls that outlive the process. It may be nil.
	Durable Durable
	// Audit is the agent's audit log. It may be nil.
	Audit AuditKeeper
}

// NewHandler returns the handler for the API of a.
func NewHandler(a Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/request", a.request)
	mux.HandleFunc("POST /v1/agent/progress", a.progress)
	mux.HandleFunc("GET /v1/agent/capabilities", a.capabilities)
	mux.HandleFunc("GET /v1/agent/status", a.status)
	mux.HandleFunc("POST /v1/peers/verify", a.verifyPeers)
	mux.HandleFunc("POST /v1/breakers/reset", a.resetBreakers)
	mux.HandleFunc("POST /v1/audit/redact", a.redactAudit)
	mux.HandleFunc("POST /v1/audit/prune", a.pruneAudit)
	mux.HandleFunc("POST /v1/audit/rotate-key", a.rotateAuditKey)
	mux.HandleFunc("POST /v1/audit/witnessed", a.witnessed)
	mux.HandleFunc("GET /v1/approvals", a.listApprovals)
	mux.HandleFunc("POST /v1/approvals/{id}", a.decideApproval)
	a.registerDurable(mux)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.Ready(); err != nil {
			writeFault(w, http.StatusServiceUnavailable, "not-ready", err.Error())
			return
		}
		var warnings []string
		if a.Warnings != nil {
			warnings = a.Warnings()
		}
		writeJSON(w, http.StatusOK, struct {
			Status   string   `json:"status"`
			Warnings []string `json:"warnings,omitempty"`
		}{"ready", warnings})
	})
	return router{mux}
}

// request handles POST /v1/request. It checks only that the body is a request; the
// Caller judges everything else, so that the CLI, skills and Go programs get the
// same errors.
func (a Agent) request(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBytes))
	if err != nil {
		code := rpc.CodeInvalidRequest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			code = rpc.CodePayloadTooLarge
		}
		refuseBody(w, code.String(), "the request could not be read", err)
		return
	}
	var request rpc.Request
	if err := decodeCall(body, &request); err != nil {
		writeFault(w, http.StatusBadRequest, rpc.CodeInvalidRequest.String(), "the request is not {to, capability, payload?, timeoutMs?, idleTimeoutMs?, mode?, idempotencyKey?, sessionId?, tenantId?, traceparent? or traceId?}: "+err.Error())
		return
	}
	// A malformed one begins no trace and is no fault (Trace Context, section 4.3).
	if parent := r.Header.Get(HeaderTraceparent); request.Traceparent == "" && rpc.TraceID(parent) != "" {
		request.Traceparent = parent
	}
	ctx, cancel, ok := a.callContext(r)
	defer cancel()
	if !ok {
		refuseEnded(w)
		return
	}
	if wantsStream(r) {
		a.stream(ctx, w, request) //nolint:contextcheck // the context of the call that the token names; it ends with the request's too
		return
	}
	result, _ := a.Caller.RequestAgent(ctx, request) //nolint:contextcheck // as above; the error is in the result
	writeJSON(w, http.StatusOK, result)
}

// refuseEnded refuses a request that is part of no running call.
func refuseEnded(w http.ResponseWriter) {
	writeFault(w, http.StatusForbidden, rpc.CodeInvalidRequest.String(), "the call that this request names in "+HeaderCall+" has ended, or never existed")
}

// callContext returns the context for a call: that of the HTTP request, or for a
// nested call one that has the values of the surrounding call and ends with
// either. ok is false when the surrounding call is not running.
func (a Agent) callContext(r *http.Request) (ctx context.Context, cancel func(), ok bool) {
	token := r.Header.Get(HeaderCall)
	if token == "" {
		return r.Context(), func() {}, true
	}
	if a.Calls == nil {
		return nil, func() {}, false
	}
	parent, ok := a.Calls.find(token)
	if !ok {
		return nil, func() {}, false
	}
	ctx, cancelCause := context.WithCancelCause(parent)
	// The values of one context and the end of both: parent gives the values, and
	// this line adds the request's end.
	stop := context.AfterFunc(r.Context(), func() { cancelCause(context.Cause(r.Context())) })
	return ctx, func() { stop(); cancelCause(nil) }, true
}

// capabilities handles GET /v1/agent/capabilities. It passes the JSON on as it is.
func (a Agent) capabilities(w http.ResponseWriter, _ *http.Request) {
	if a.Capabilities == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeNoCapability.String(), "this agent only calls others; it offers no capabilities")
		return
	}
	data, err := a.Capabilities()
	if err != nil {
		writeFault(w, http.StatusInternalServerError, rpc.CodeInternal.String(), err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n'))
}

// A fault is the body of a response other than 200.
type fault struct {
	Error faultBody `json:"error"`
}

type faultBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// writeFault responds with an error of the API itself: no call was made.
func writeFault(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, fault{Error: faultBody{Code: code, Message: message}})
}

// writeJSON encodes v before it writes the status, so that a value that cannot be
// encoded becomes a proper error.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // a payload passes through byte for byte
	if err := enc.Encode(v); err != nil {
		status = http.StatusInternalServerError
		body.Reset()
		body.WriteString(`{"error":{"code":"EAGENTRPC_INTERNAL","message":"the response could not be encoded"}}` + "\n")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // fails only when the client has disconnected
}
