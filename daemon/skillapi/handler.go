package skillapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/rpc"
)

// HeaderCall names the running call that a request is part of.
const HeaderCall = "Agentd-Call"

// CodeNotAnOperator is the code for requests that only an operator may make.
const CodeNotAnOperator = "not-an-operator"

// afterEnd is how long a skill may take to read a response when its call has ended, and for the
// rest of its request when that has been answered.
const afterEnd = 5 * time.Second

// ServeHTTP implements [http.Handler]. What it refuses it refuses before it has read a
// body.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := s.foreignOrigin(r); why != "" {
		refuse(w, why)
		return
	}
	c := s.calls.find(token(r))
	if c == nil || !mayName(r.Context(), c) {
		refuse(w, endedText)
		return
	}
	out := http.NewResponseController(w)
	defer func() { // package http goes on to read what is left of the body, and to write the rest
		last := time.Now().Add(afterEnd)
		_ = errors.Join(out.SetReadDeadline(last), out.SetWriteDeadline(last)) // as below
	}()
	defer c.atEnd(func() {
		// What is still being read is not for this call any more; what is being written
		// must not wait for ever on a process that has outlived the call.
		now := time.Now()
		_ = errors.Join(out.SetReadDeadline(now), out.SetWriteDeadline(now.Add(afterEnd))) // a connection that has no deadlines is closed
	})()
	id, isResult := strings.CutPrefix(r.URL.Path, "/v1/results/")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/request":
		limited(w, r, c.requests, func() { s.request(w, r, c) })
	case r.Method == http.MethodGet && isResult && id != "":
		limited(w, r, c.requests, func() { s.await(w, r, c, id) })
	case r.URL.Path == "/mcp" && s.cfg.Tools != nil:
		limited(w, r, c.requests, func() { s.tools(w, r, c) })
	case r.Method == http.MethodPost && r.URL.Path == "/v1/agent/progress":
		limited(w, r, c.progress, func() { progress(w, r, c) })
	case r.Method == http.MethodPost && r.URL.Path == "/v1/agent/model-usage" && s.cfg.ModelUsage != nil:
		limited(w, r, c.progress, func() { s.modelUsage(w, r, c) })
	default:
		s.misuse(c, r)
		callapi.WriteFault(w, http.StatusForbidden, CodeNotAnOperator, fmt.Sprintf(
			"a skill may not ask for %s %.200q: it may POST to /v1/request, /v1/agent/progress, /v1/agent/model-usage and /mcp, and GET /v1/results/<correlation id>; everything else is an operator's, whose API a skill cannot reach", r.Method, r.URL.Path))
	}
}

// token names the running call that a request is part of. Clients of the Model Context
// Protocol can rarely set other headers than Authorization.
func token(r *http.Request) string {
	if t := r.Header.Get(HeaderCall); t != "" {
		return t
	}
	t, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return t
}

const endedText = "the call that this request names in " + HeaderCall + " has ended, or never existed"

func refuse(w http.ResponseWriter, why string) {
	callapi.WriteFault(w, http.StatusForbidden, rpc.CodeInvalidRequest.String(), why)
}

// foreignOrigin says why a request is none of a skill's: it comes from a page in a
// browser, or by way of a name or proxy that is not this server's.
func (s *Server) foreignOrigin(r *http.Request) string {
	if r.Host != s.addr.String() {
		return fmt.Sprintf("the request is for the host %.100q, and this is %s: use $AGENTD_URL as it is, and no proxy", r.Host, s.addr)
	}
	if len(r.Header.Values("Origin")) > 0 {
		return "this API is for skills, and for no page in a browser"
	}
	return ""
}

// limited calls serve unless too many requests of its kind are in progress. Only a connection
// with such a request is none of a stranger's: a skill with a token could open any number.
func limited(w http.ResponseWriter, r *http.Request, slots chan struct{}, serve func()) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		defer admit(r.Context())()
		serve()
	default:
		callapi.WriteFault(w, http.StatusTooManyRequests, rpc.CodeBusy.String(), fmt.Sprintf(
			"the skill's call has %d requests in progress, which is as many as it may have: wait for one of them", cap(slots)))
	}
}

// request makes a nested call.
func (s *Server) request(w http.ResponseWriter, r *http.Request, c *call) {
	request, ok := callapi.ReadRequest(w, r, s.maxBody())
	if !ok {
		return
	}
	ctx, cancel := c.join(r.Context())
	defer cancel()
	if ctx.Err() != nil {
		refuse(w, endedText)
		return
	}
	callapi.Call(ctx, w, r, s.cfg.Caller, request)
}

// tools passes a request of the Model Context Protocol on.
func (s *Server) tools(w http.ResponseWriter, r *http.Request, c *call) {
	ctx, cancel := c.join(r.Context())
	defer cancel()
	if ctx.Err() != nil {
		refuse(w, endedText)
		return
	}
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, s.maxBody())
	s.cfg.Tools.ServeHTTP(w, r)
}

// maxBody bounds a request: JSON may spell a payload with escapes and white space.
func (s *Server) maxBody() int64 {
	return min(4*int64(s.cfg.MaxPayloadBytes())+64<<10, callapi.MaxRequestBytes)
}

// await waits for the result of an asynchronous call.
func (s *Server) await(w http.ResponseWriter, r *http.Request, c *call, id string) {
	wait, ok := callapi.ReadWait(w, r)
	if !ok {
		return
	}
	joined, cancel := c.join(r.Context())
	defer cancel()
	ctx, stop := context.WithTimeout(joined, wait)
	defer stop()
	callapi.WriteJSON(w, http.StatusOK, s.cfg.Results.Await(ctx, id))
}

// progress reports the progress of a call to its caller.
func progress(w http.ResponseWriter, r *http.Request, c *call) {
	// Twice the limit, so that white space around a value does not count;
	// rpc.Progress applies the limit itself.
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*rpc.MaxProgressBytes))
	if err != nil {
		callapi.RefuseBody(w, callapi.BodyCode(err).String(), fmt.Sprintf("progress of at most %d bytes could not be read", rpc.MaxProgressBytes), err)
		return
	}
	if c.ctx.Err() != nil {
		refuse(w, endedText)
		return
	}
	if err := rpc.Progress(c.ctx, bytes.TrimSpace(value)); err != nil {
		refuseReport(w, err)
		return
	}
	callapi.WriteJSON(w, http.StatusOK, map[string]bool{"wanted": rpc.InvocationFrom(c.ctx).WantsProgress()})
}

// modelUsage takes a report of what a request to a language model used.
func (s *Server) modelUsage(w http.ResponseWriter, r *http.Request, c *call) {
	if c.usages.Add(1) > rpc.MaxModelUsages {
		callapi.WriteFault(w, http.StatusTooManyRequests, rpc.CodeBusy.String(), fmt.Sprintf(
			"the skill's call has made %d reports of a model's usage, which is as many as it may make", rpc.MaxModelUsages))
		return
	}
	report, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rpc.MaxModelUsageBytes))
	if err != nil {
		callapi.RefuseBody(w, callapi.BodyCode(err).String(), fmt.Sprintf("a report of at most %d bytes could not be read", rpc.MaxModelUsageBytes), err)
		return
	}
	usage, err := rpc.ReadModelUsage(bytes.TrimSpace(report))
	if err != nil {
		refuseReport(w, err)
		return
	}
	inv := rpc.InvocationFrom(c.ctx)
	if c.ctx.Err() != nil || inv == nil {
		refuse(w, endedText)
		return
	}
	s.cfg.ModelUsage(inv, usage)
	callapi.WriteJSON(w, http.StatusOK, map[string]bool{"taken": true})
}

// refuseReport says what is wrong with what a skill reports.
func refuseReport(w http.ResponseWriter, err error) {
	code, message := rpc.CodeInternal.String(), err.Error()
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		code, message = e.Code.String(), e.Message
	}
	callapi.WriteFault(w, http.StatusBadRequest, code, message)
}

// misuse logs that a skill asks for what only an operator may, once for each call at most, and of
// calls that ask for the same the first, and then each time that their number has doubled: a kit
// that is newer than this agent asks with each call.
func (s *Server) misuse(c *call, r *http.Request) {
	c.misused.Do(func() {
		var capability, correlation string
		if inv := rpc.InvocationFrom(c.ctx); inv != nil {
			capability, correlation = inv.Capability, inv.CorrelationID
		}
		if asked, times, tell := s.misuses.Note(capability, r); tell {
			s.cfg.Logger.Warn("a skill asks for what only an operator may", "capability", capability, "correlationId", correlation, "asked", asked, "calls", times)
		}
	})
}

// otherUser logs connections of other users: the first, and then each time that their
// number has doubled.
func (s *Server) otherUser() {
	if n := s.foreign.Add(1); n&(n-1) == 0 {
		s.cfg.Logger.Warn("another user of this host connects to the port of the agent's skills, and is cut off", "times", n)
	}
}
