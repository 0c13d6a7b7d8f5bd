package callapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/agentd/agentd/rpc"
)

// HeaderTraceparent is the W3C trace context of the program that makes a request. The
// call continues it unless the request names a trace itself.
const HeaderTraceparent = "traceparent"

// HeaderTracestate is what vendors of tracing have added to it.
const HeaderTracestate = "tracestate"

// MaxRequestBytes bounds the body of a request. The agent's own limit on payloads
// is smaller, and is applied by its [Caller].
const MaxRequestBytes = 32 << 20

// A Caller makes calls.
type Caller interface {
	RequestAgent(context.Context, rpc.Request) (*rpc.Result, error)
}

// ReadRequest reads the body of POST /v1/request, at most that many bytes. It checks
// only that the body is a request; the [Caller] judges everything else, so that the
// CLI, skills and Go programs get the same errors. Where ok is false, it has responded.
func ReadRequest(w http.ResponseWriter, r *http.Request, most int64) (request Request, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		RefuseBody(w, BodyCode(err).String(), "the request could not be read", err)
		return request, false
	}
	if request.standard, err = decodeCall(body, &request.Request); err != nil {
		WriteFault(w, http.StatusBadRequest, rpc.CodeInvalidRequest.String(), "the request is not {to, capability, payload?, timeoutMs?, idleTimeoutMs?, mode?, idempotencyKey?, sessionId?, tenantId?, traceparent? or traceId?}: "+err.Error())
		return request, false
	}
	// A malformed one begins no trace and is no fault (Trace Context, section 4.3).
	if parent := r.Header.Get(HeaderTraceparent); request.Traceparent == "" && rpc.TraceID(parent) != "" {
		request.Traceparent, request.Tracestate = parent, r.Header.Get(HeaderTracestate)
	}
	return request, true
}

// BodyCode is the code for a body that could not be read.
func BodyCode(err error) rpc.Code {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return rpc.CodePayloadTooLarge
	}
	return rpc.CodeInvalidRequest
}

// Call makes a call and responds with its result; to a client that accepts a stream,
// with its progress and then its result. The call ends with ctx.
func Call(ctx context.Context, w http.ResponseWriter, r *http.Request, caller Caller, request Request) {
	if wantsStream(r) {
		stream(ctx, w, caller, request)
		return
	}
	result, _ := caller.RequestAgent(ctx, request.Request) // the error is in the result
	WriteJSON(w, http.StatusOK, request.result(result))
}

// maxAwait bounds one wait for a result. A client that wants to wait longer asks
// again; the bound keeps forgotten connections from piling up.
const maxAwait = time.Hour

// ReadWait returns how long GET /v1/results/{id} is to wait. Where ok is false, it has
// responded.
func ReadWait(w http.ResponseWriter, r *http.Request) (wait time.Duration, ok bool) {
	ms, err := strconv.ParseInt(r.URL.Query().Get("timeoutMs"), 10, 64)
	if err != nil || ms < 1 || ms > maxAwait.Milliseconds() {
		WriteFault(w, http.StatusBadRequest, rpc.CodeInvalidRequest.String(), "timeoutMs must be from 1 to an hour")
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}
