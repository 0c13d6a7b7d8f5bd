package clientapi

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/rpc"
)

// Codes of requests that are not let in, or ask for what is not a client's.
const (
	CodeUnauthorized  = "unauthorized"
	CodeForbidden     = "forbidden"
	CodeNotAnOperator = "not-an-operator"
)

// headerCall is that of a skill's requests, which this API does not take.
const headerCall = "Agentd-Call"

// ServeHTTP implements [http.Handler]. What it refuses it refuses before it has read a body.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := s.current.Load()
	w = hurried{w}
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // that of the response before
	if r.Body != http.NoBody {
		// It bounds the body, read or not: package http reads what a handler has left.
		_ = out.SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	w.Header().Set("Cache-Control", "no-store")
	client, no := now.gate.Admit(r)
	if no != nil {
		code := CodeForbidden
		if no.Status == http.StatusUnauthorized {
			code = CodeUnauthorized
		}
		if no.Challenge != "" {
			w.Header().Set("WWW-Authenticate", no.Challenge)
		}
		s.stranger(no.Text)
		s.refuse(w, no.Status, code, no.Text)
		return
	}
	id, isResult := strings.CutPrefix(r.URL.Path, "/v1/results/")
	switch {
	case r.Header.Get(headerCall) != "":
		s.refuse(w, http.StatusForbidden, rpc.CodeInvalidRequest.String(),
			"this API serves no nested calls: a skill's requests, with the header "+headerCall+", go to $AGENTD_URL of its call")
	case r.Method == http.MethodPost && r.URL.Path == "/v1/request":
		s.counted(w, client, func() { s.request(w, r, client, now.body) })
	case r.Method == http.MethodGet && isResult && id != "" && !strings.Contains(id, "/"):
		s.counted(w, client, func() { s.await(w, r, client, id) })
	default:
		if asked, times, tell := s.misuses.Note(client, r); tell {
			s.log.Warn("a client of the control API asks for what only an operator may", "client", client, "asked", asked, "times", times)
		}
		s.refuse(w, http.StatusForbidden, CodeNotAnOperator, fmt.Sprintf(
			"a client may not ask for %s %.200q: it may POST to /v1/request, and GET /v1/results/<correlation id>; everything else is an operator's, at the agent's Unix socket", r.Method, r.URL.Path))
	}
}

// refuse responds without having read a body, which may be of any length and never come: the
// connection ends.
func (s *Server) refuse(w http.ResponseWriter, status int, code, message string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedTimeout)) // as in ServeHTTP
	w.Header().Set("Connection", "close")
	callapi.WriteFault(w, status, code, message)
}

// stranger logs requests that are not let in: the first, and then each time that their number has
// doubled.
func (s *Server) stranger(why string) {
	if n := s.refused.Add(1); n&(n-1) == 0 {
		s.log.Warn("a request to the control API is refused: it is no client's", "reason", why, "times", n)
	}
}

// counted calls serve unless too many requests of the client are in progress.
func (s *Server) counted(w http.ResponseWriter, client string, serve func()) {
	release, err := s.agent.Begin(client)
	if err != nil {
		w.Header().Set("Connection", "close") // its body is not read
		notMade(w, err)
		return
	}
	defer release()
	serve()
}

// request makes a call.
func (s *Server) request(w http.ResponseWriter, r *http.Request, client string, most int64) {
	request, ok := callapi.ReadRequest(w, r, most)
	if !ok {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the call may take as long as it may
	if err := s.agent.Permit(r.Context(), client, &request.Request); err != nil {
		notMade(w, err)
		return
	}
	callapi.Call(r.Context(), w, r, caller{s.agent, client}, request)
}

// notMade responds to a request of which no call is made.
func notMade(w http.ResponseWriter, err *rpc.Error) {
	status := http.StatusForbidden
	if err.Code == rpc.CodeRateLimited || err.Code == rpc.CodeBusy {
		status = http.StatusTooManyRequests
	}
	if err.Code == rpc.CodeAuditFailed {
		status = http.StatusServiceUnavailable
	}
	if err.RetryIn > 0 || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(err.RetryIn.Seconds())))))
	}
	callapi.WriteFault(w, status, err.CodeText(), err.Message)
}

// A caller makes the calls of one client.
type caller struct {
	agent  Agent
	client string
}

// RequestAgent implements [callapi.Caller].
func (c caller) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	result, err := c.agent.RequestAgent(ctx, r)
	c.agent.Noted(c.client, &r, result)
	return result, err
}

// await waits for the result of an asynchronous call.
func (s *Server) await(w http.ResponseWriter, r *http.Request, client, id string) {
	wait, ok := callapi.ReadWait(w, r)
	if !ok {
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), wait)
	defer stop()
	callapi.WriteJSON(w, http.StatusOK, s.agent.Await(ctx, client, id))
}

// A hurried writer bounds how long a client may take to read each part of a response.
type hurried struct{ http.ResponseWriter }

// Write implements [http.ResponseWriter].
func (h hurried) Write(p []byte) (int, error) {
	_ = http.NewResponseController(h.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout)) // a connection that has no deadlines has other bounds
	return h.ResponseWriter.Write(p)
}

// Unwrap lets a controller reach the connection.
func (h hurried) Unwrap() http.ResponseWriter { return h.ResponseWriter }
