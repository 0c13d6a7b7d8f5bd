package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/netguard"
)

// streamFactor is how many times the bound of a message one stream may be long. Then it
// ends, and the protocol's library begins another after a pause.
const streamFactor = 16

// A web is the way to a URL: it sends requests within the rules of package netguard, bounds
// what comes back, and takes results out of it. Whatever it has under way ends with close.
type web struct {
	guard  *netguard.Client
	limits Limits
	life   context.Context
	cancel context.CancelFunc
	asked  atomic.Int64 // requests of the server that have no answer yet

	auth   Authorizer // or nil
	url    *url.URL   // the server's
	denied atomic.Pointer[mcpauth.Error]
}

func openWeb(o *Options) (*web, error) {
	policy, err := o.URL.Policy()
	if err != nil {
		return nil, err
	}
	w := &web{limits: o.Limits, auth: o.URL.Auth}
	if w.url, err = url.Parse(o.URL.URL); err != nil {
		return nil, err
	}
	if w.auth != nil {
		if err := mcpauth.Check(o.URL.URL); err != nil {
			return nil, fmt.Errorf("no token is sent to the server: %w", err)
		}
	}
	if w.guard, err = netguard.New(policy); err != nil {
		return nil, err
	}
	w.life, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

func (w *web) close() {
	w.cancel()
	w.guard.Close()
}

// client sends requests, and follows no redirect: what a server is called stands in the
// configuration.
func (w *web) client() *http.Client {
	return &http.Client{
		Transport:     w,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var (
	errClosed   = errors.New("the connection was closed")
	errNoAnswer = errors.New("the server did not answer in time")
)

// RoundTrip implements [http.RoundTripper].
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(w.life, func() { cancel(errClosed) }) //nolint:contextcheck // as in Client.try
	release := func() { stop(); cancel(nil) }

	id, method, answers := w.message(req)
	if answers {
		defer w.asked.Add(-1) // the server has taken the answer, or never will
	}
	captured := captureOf(ctx)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: captured.goesOut})
	// A call has its own bound. Everything else, streams included, is answered at once.
	late := time.AfterFunc(w.limits.StartTimeout, func() {
		if method != methodCall {
			cancel(errNoAnswer)
		}
	})
	defer late.Stop()
	resp, err := w.send(req.WithContext(ctx), captured)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		release()
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "text/event-stream" {
		resp.Body = &eventReader{
			body: &releasing{resp.Body, release}, most: w.limits.MessageBytes,
			left:   streamFactor * int64(w.limits.MessageBytes),
			see:    func(data []byte) error { return w.see(captured, id, data) },
			failed: captured.fail,
		}
		return resp, nil
	}
	defer release()
	if resp, err = w.whole(resp, captured, id); err != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return resp, err
}

// send sends a request with a token, and once more with another one where the server does not
// take the first.
func (w *web) send(req *http.Request, captured *capture) (*http.Response, error) {
	// The library sends to no other URL. A token certainly goes to none.
	if w.auth == nil || req.URL.Scheme != w.url.Scheme || req.URL.Host != w.url.Host {
		return w.guard.Transport().RoundTrip(req)
	}
	ctx, out := req.Context(), req.Clone(req.Context())
	for last := req.Body != nil && req.GetBody == nil; ; last = true {
		token, err := w.auth.Token(ctx)
		if err != nil {
			return nil, w.deny(captured, err)
		}
		if token != "" {
			out.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := w.guard.Transport().RoundTrip(out)
		if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		again, err := w.auth.Refused(ctx, mcpauth.Refusal{Token: token, Status: resp.StatusCode, Header: resp.Header, Last: last})
		if err == nil && (!again || last) {
			return resp, nil
		}
		_ = resp.Body.Close() // it says nothing that counts
		if err != nil {
			return nil, w.deny(captured, err)
		}
		out = req.Clone(ctx)
		if req.GetBody != nil {
			if out.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// deny notes that a request was not let in. The server has not done what it asks for.
func (w *web) deny(captured *capture, err error) error {
	if e := (*mcpauth.Error)(nil); errors.As(err, &e) {
		w.denied.Store(e)
		captured.turnedBack(e)
	}
	return err
}

// redact takes out of a part of an answer what the server was sent.
func (w *web) redact(part []byte) []byte {
	part = w.guard.Redact(part)
	if w.auth != nil {
		part = netguard.Redact(part, w.auth.Secrets())
	}
	return part
}

const methodCall = "tools/call"

// message reads what a request carries: the id of the answer that belongs to it, or whether it
// answers what the server has asked.
func (w *web) message(req *http.Request) (id jsonrpc.ID, method string, answers bool) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return id, "", false
	}
	body, err := req.GetBody()
	if err != nil {
		return id, "", false
	}
	data, _ := io.ReadAll(body) // from memory
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return id, "", false
	}
	switch m := msg.(type) {
	case *jsonrpc.Request:
		return m.ID, m.Method, false
	case *jsonrpc.Response:
		return id, "", true
	}
	return id, "", false
}

// whole reads an answer that is no stream.
func (w *web) whole(resp *http.Response, captured *capture, id jsonrpc.ID) (*http.Response, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(w.limits.MessageBytes)+1))
	_ = resp.Body.Close() // it was only read
	if err == nil && len(data) > w.limits.MessageBytes {
		err = tooLarge(w.limits.MessageBytes)
	}
	if err != nil {
		captured.fail(err)
		return nil, err
	}
	if msg, err := jsonrpc.DecodeMessage(data); err == nil {
		// An error that is no answer of a tool may not know which request it is about.
		if r, ok := msg.(*jsonrpc.Response); ok && (r.ID == id || r.Error != nil && resp.StatusCode >= http.StatusBadRequest) {
			captured.take(r)
		}
	}
	if resp.StatusCode >= http.StatusBadRequest { // the library may quote it
		data = w.redact(data)
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// see looks at the data of an event.
func (w *web) see(captured *capture, id jsonrpc.ID, data []byte) error {
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil // the library says what it thinks of that
	}
	switch m := msg.(type) {
	case *jsonrpc.Response:
		if m.ID == id {
			captured.take(m)
		}
	case *jsonrpc.Request:
		if m.IsCall() && w.asked.Add(1) > maxAsked {
			return misbehaved("the server asks more than is answered")
		}
	}
	return nil
}

// A releasing body ends what its request has begun.
type releasing struct {
	io.ReadCloser
	release func()
}

func (r *releasing) Close() error {
	r.release()
	return r.ReadCloser.Close()
}
