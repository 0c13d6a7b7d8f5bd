package mcphttp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/internal/ijson"
)

const (
	allowed       = "GET, POST, DELETE"
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	nameHeader    = "Mcp-Name"
)

// A Handler is the endpoint. It is safe for concurrent use.
type Handler struct {
	cfg       Config
	addresses *addresses
	auth      atomic.Pointer[authenticator]
	running   sync.WaitGroup // sessions, and what ends them

	mu      sync.Mutex
	clients map[string]*client
	closed  bool
	// finishing means that no call and no session begins.
	finishing atomic.Bool
}

// New makes a handler. The error joins a [*ConfigError] for each fault. [Handler.Close] ends what
// it starts.
func New(cfg Config) (*Handler, error) {
	if cfg.Path == "" {
		cfg.Path = "/mcp"
	}
	if err := errors.Join(cfg.check(), cfg.Auth.check()); err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Guards == nil {
		cfg.Guards = &Guards{}
	}
	if o := cfg.Auth.OAuth; o != nil {
		_, rest, _ := strings.Cut(o.Resource, "://")
		host, _, _ := strings.Cut(rest, "/")
		cfg.Hosts = append(cfg.Hosts[:len(cfg.Hosts):len(cfg.Hosts)], host)
	}
	h := &Handler{cfg: cfg, addresses: newAddresses(cfg.Hosts, cfg.Origins), clients: map[string]*client{}}
	h.auth.Store(newAuthenticator(context.Background(), cfg.Auth, cfg.Logger, nil))
	return h, nil
}

// Path is the path of the endpoint.
func (h *Handler) Path() string { return h.cfg.Path }

// IssuerFault is why the keys of the authorization server cannot be had, and since when; nil if they
// can, or if no tokens of one are taken.
func (h *Handler) IssuerFault() (since time.Time, cause error) {
	o := h.auth.Load().oauth
	if o == nil {
		return time.Time{}, nil
	}
	return o.keys.fault()
}

// SetAuth replaces who may use the endpoint. What began with a token that is no longer accepted
// ends: calls, streams and sessions. On an error, nothing has changed.
func (h *Handler) SetAuth(a Auth) error {
	if err := a.check(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errShutdown
	}
	before := h.auth.Load()
	now := newAuthenticator(context.Background(), a, h.cfg.Logger, before)
	h.auth.Store(now)
	for _, c := range h.clients {
		c.retain(now.holds, errRevoked)
	}
	if before.oauth != nil && (now.oauth == nil || now.oauth.keys != before.oauth.keys) {
		before.oauth.keys.stop()
	}
	return nil
}

// Drain waits until the calls that clients have made are answered, or ctx ends. It is for
// servers whose tools begin nothing any more, and comes before [Handler.Close], which cuts
// off what is not answered.
func (h *Handler) Drain(ctx context.Context) {
	h.mu.Lock()
	clients := slices.Collect(maps.Values(h.clients))
	h.mu.Unlock()
	for _, c := range clients {
		select {
		case <-c.whenAnswered():
		case <-ctx.Done():
			return
		}
	}
}

// Finish refuses calls, streams and sessions from now on, with 503, and waits until those calls
// that run are answered, or ctx ends. Meanwhile they go on as before: their clients can cancel
// them, and answer what they ask. [Handler.Close] comes after it.
func (h *Handler) Finish(ctx context.Context) {
	h.finishing.Store(true)
	h.Drain(ctx) // a call that passes takeCall is counted by then
}

// Close ends all sessions, streams and calls, and waits until ctx ends for those that take their
// time. Requests that come later are answered with 503. It comes before the Shutdown of the
// http.Server, which waits for streams.
func (h *Handler) Close(ctx context.Context) error {
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	clients := h.clients
	h.mu.Unlock()
	for _, c := range clients {
		c.close()
	}
	if o := h.auth.Load().oauth; o != nil && first {
		o.keys.stop()
	}
	done := make(chan struct{})
	go func() {
		h.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mcphttp: calls of sessions still run: %w", ctx.Err())
	}
}

func closing() *refusal {
	return &refusal{status: http.StatusServiceUnavailable, text: "the endpoint is being closed", retryAfter: 5 * time.Second}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := newWriter(rw, r, h.cfg.Limits.WriteTimeout)
	defer w.end()
	defer h.recovered(w, r)
	// It bounds the body, read or not: package http reads what a handler has left.
	hasBody := r.Body != nil && r.Body != http.NoBody
	if hasBody {
		_ = w.control.SetReadDeadline(time.Now().Add(h.cfg.Limits.BodyTimeout))
	}
	h.addresses.share(w, r)
	if err := h.addresses.refuse(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if err := onlyOnce(r.Header); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	auth := h.auth.Load()
	if o := auth.oauth; o != nil && (r.URL.Path == o.path || r.URL.Path == wellKnown) {
		o.metadata.ServeHTTP(w, r)
		return
	}
	switch {
	case r.URL.Path != h.cfg.Path:
		http.Error(w, "nothing is served here", http.StatusNotFound)
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", allowed)
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodDelete:
		w.Header().Set("Allow", allowed)
		http.Error(w, "the methods are "+allowed, http.StatusMethodNotAllowed)
	case hasBody && r.Method != http.MethodPost:
		http.Error(w, "only POST has a body", http.StatusBadRequest)
	default:
		h.serve(w, r, auth)
	}
}

// recovered answers a request whose handler panicked, as far as it can be answered.
func (h *Handler) recovered(w *writer, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // it is a value to panic with, which is how package http compares it
		panic(p) //nolint:forbidigo // package http waits for it
	}
	h.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "a request to the MCP endpoint panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	if !w.wrote {
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
}

// serve serves a request to the endpoint.
func (h *Handler) serve(w *writer, r *http.Request, auth *authenticator) {
	who, no := auth.identify(r)
	if no != nil {
		auth.write(w, no)
		return
	}
	c, no := h.client(who.client)
	if no != nil {
		auth.write(w, no)
		return
	}
	x, no := c.begin(r.Context(), who)
	if no != nil {
		auth.write(w, no)
		return
	}
	defer c.end(x)
	w.header = func(header http.Header) {
		if id := header.Get(sessionHeader); id != "" && x.starts {
			c.adopt(x, id)
		}
	}
	if r.Method == http.MethodPost {
		h.post(x, w, r)
		// The header of an answer that nobody has written, because its client went, counts,
		// too: the library may have started a session, which nobody else would end.
		w.begin()
		return
	}
	h.session(x, w, r)
}

// reach finds the server that serves an exchange, or answers that there is none. It comes last: what
// makes servers may forget one that nobody uses, and a body takes as long as its sender likes.
func (h *Handler) reach(x *exchange, w http.ResponseWriter) bool {
	server, err := h.cfg.Server(x.who.client)
	if err == nil && server == nil {
		err = errNoServer
	}
	x.client.noteServer(err)
	auth := h.auth.Load()
	switch {
	case err != nil:
		auth.write(w, &refusal{status: http.StatusServiceUnavailable, text: "nothing can be served to this client now", retryAfter: 5 * time.Second})
		return false
	// The token may have been taken away since it was looked at, before the client had x.
	case !auth.holds(x.who):
		auth.write(w, &refusal{status: http.StatusUnauthorized, code: "invalid_token", text: "the token is not known"})
		return false
	}
	h.cfg.Guards.guard(server, h.cfg.Logger)
	x.server = server
	return true
}

// errNoServer is what is logged where [Config].Server returns nothing at all.
var errNoServer = errors.New("there is none")

// client returns the state of a client. Names come from the configuration, so that their number
// is bounded.
func (h *Handler) client(name string) (*client, *refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, closing()
	}
	c := h.clients[name]
	if c == nil {
		c = newClient(h, name)
		h.clients[name] = c
	}
	return c, nil
}

// session serves GET, the stream of a session, and DELETE, its end. Both are of the era that has
// sessions.
func (h *Handler) session(x *exchange, w *writer, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if modern(r) || id == "" {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "without a session, the method is POST", http.StatusMethodNotAllowed)
		return
	}
	if !h.reach(x, w) {
		return
	}
	if !x.client.use(x, id) {
		noSession(w)
		return
	}
	if r.Method == http.MethodDelete {
		// The library waits for calls that run.
		x.client.interrupt(x.session, x, errEnded)
		x.serve(x.client.stateful, w, r)
		return
	}
	if !x.client.takeStream(x) {
		tooMany(w, nil, "too many streams at once")
		return
	}
	defer x.untilExpiry()()
	x.serve(x.client.stateful, w, r)
}

// untilExpiry ends a stream when its token expires: it would be a way around that otherwise.
func (x *exchange) untilExpiry() (stop func()) {
	if x.who.expires.IsZero() {
		return func() {}
	}
	timer := time.AfterFunc(time.Until(x.who.expires.Add(leeway)), func() { x.cancel(errExpired) })
	return func() { timer.Stop() }
}

// modern reports whether a request is of the era without sessions. The library decides the same.
func modern(r *http.Request) bool { return r.Header.Get(versionHeader) >= modernVersion }

// post serves a message.
func (h *Handler) post(x *exchange, w *writer, r *http.Request) {
	body, status, err := h.read(w, r)
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not waited for
		writeError(w, status, nil, codeInvalidRequest, err.Error())
		return
	}
	m, bad := parse(body)
	if bad != nil {
		writeError(w, http.StatusBadRequest, m.id, bad.code, bad.text)
		return
	}
	// The library sends a message that says 2026-07-28 of itself, and is not in a request
	// that does, to the era of sessions, whose answer is another one than the specification's.
	if version := r.Header.Get(versionHeader); m.version >= modernVersion && m.version != version {
		text := "header Mcp-Protocol-Version is not the version of _meta"
		if version == "" {
			text = "header Mcp-Protocol-Version is required"
		}
		writeError(w, http.StatusBadRequest, m.id, codeHeaderMismatch, text)
		return
	}
	if m.call() && h.finishing.Load() {
		h.auth.Load().write(w, closing())
		return
	}
	to, ok := h.route(x, w, r, &m)
	if !ok {
		return
	}
	if m.method == methodListen && m.id != nil {
		if !x.client.takeStream(x) {
			tooMany(w, m.id, "too many streams at once")
			return
		}
		defer x.untilExpiry()()
		x.holders = 1 // for the guard; it takes no place among calls
		x.stream = true
	} else if m.call() {
		if !x.client.takeCall(x) {
			tooMany(w, m.id, "too many calls at once: wait for the answers of others")
			return
		}
		defer x.letGo()
	}
	if !h.reach(x, w) {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	x.serve(to, w, r)
}

// read reads the body of a request.
func (h *Handler) read(w *writer, r *http.Request) (body []byte, status int, err error) {
	limit := h.cfg.Limits.MaxBodyBytes
	tooLarge := fmt.Errorf("a message has at most %d bytes", limit)
	if r.ContentLength > limit {
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	body, err = io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, http.StatusRequestTimeout, errors.New("the message did not come in time")
	}
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("the message cannot be read")
	}
	_ = w.control.SetReadDeadline(time.Time{}) // the answer may take longer
	return body, 0, nil
}

// route decides which era a message belongs to, and whether it has the session that it needs.
func (h *Handler) route(x *exchange, w *writer, r *http.Request, m *message) (http.Handler, bool) {
	c := x.client
	if modern(r) {
		if err := decodeName(r.Header); err != nil {
			writeError(w, http.StatusBadRequest, m.id, codeHeaderMismatch, err.Error())
			return nil, false
		}
		return c.stateless, true
	}
	if id := r.Header.Get(sessionHeader); id != "" {
		if !c.use(x, id) {
			noSession(w)
			return nil, false
		}
		return c.stateful, true
	}
	if m.method != methodStart || m.id == nil {
		writeError(w, http.StatusBadRequest, m.id, codeInvalidRequest, "the message names no session: begin with initialize, or send Mcp-Protocol-Version: "+modernVersion)
		return nil, false
	}
	if !c.start(x) {
		tooMany(w, m.id, "too many sessions at once: end one of them")
		return nil, false
	}
	return c.stateful, true
}

// decodeName decodes a name that does not fit into a header, as the specification has it. The
// library compares it as it is.
func decodeName(header http.Header) error {
	inner, ok := strings.CutPrefix(header.Get(nameHeader), "=?base64?")
	if !ok || !strings.HasSuffix(inner, "?=") {
		return nil
	}
	name, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
	if err != nil {
		return errors.New("header Mcp-Name is not valid Base64")
	}
	header.Set(nameHeader, string(name))
	return nil
}

// noSession is the answer that makes a client begin anew.
func noSession(w http.ResponseWriter) {
	http.Error(w, "there is no such session", http.StatusNotFound)
}

func tooMany(w http.ResponseWriter, id json.RawMessage, text string) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusTooManyRequests, id, codeBusy, text)
}

// writeError answers with an error of JSON-RPC.
func writeError(w http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, ijson.AppendQuoted(nil, text))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone learns nothing
}
