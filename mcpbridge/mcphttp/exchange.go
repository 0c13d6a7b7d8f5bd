package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Why an exchange ends before its answer is there: the causes of the contexts of calls.
var (
	errGone     = errors.New("the client has gone")
	errEnded    = errors.New("the session has ended")
	errRevoked  = errors.New("the token is no longer accepted")
	errExpired  = errors.New("the token has expired")
	errShutdown = errors.New("the endpoint is closed")
)

// An exchange is one HTTP request, from its authentication to the end of its answer, and the
// call that it carries. The call may take longer than the answer: a client goes away, and the
// tool has yet to notice.
type exchange struct {
	client *client
	who    identity
	server *mcp.Server     // nil before [Handler.reach]
	ctx    context.Context // of the request; its cause says why it ended
	cancel context.CancelCauseFunc

	// These belong to the client's mutex.
	session *session // that the request names; nil for none
	starts  bool     // it starts a session, for which a place is kept
	stream  bool     // it counts as a stream

	mu      sync.Mutex
	holders int // of the place that a call takes: the answer, and the tool
}

// exchangeKey is where the library's information about a token has the exchange.
const exchangeKey = "mcpbridge/mcphttp.exchange"

// tokenInfo makes what tools learn of the request's sender. The library hands it on from the
// request to the tool, and nothing else of a request's context.
func (x *exchange) tokenInfo() *auth.TokenInfo {
	return &auth.TokenInfo{UserID: x.who.client, Expiration: x.who.expires, Extra: map[string]any{exchangeKey: x}}
}

// exchangeOf finds the exchange that a tool is called in; nil if it came in another way than
// through a handler of this package.
func exchangeOf(req mcp.Request) *exchange {
	if req == nil {
		return nil
	}
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	x, _ := extra.TokenInfo.Extra[exchangeKey].(*exchange)
	return x
}

// A Caller is who makes a call over HTTP.
type Caller struct {
	// Client is the client's name.
	Client string
	// Issuer, Subject and ClientID are those of the access token; empty for a static one.
	Issuer, Subject, ClientID string
}

// CallerOf returns who makes a call, from what the library hands to its tool. It is false for
// a call that did not come through a [Handler].
func CallerOf(req mcp.Request) (Caller, bool) {
	x := exchangeOf(req)
	if x == nil {
		return Caller{}, false
	}
	c := x.who.claims
	return Caller{Client: x.who.client, Issuer: c.issuer, Subject: c.subject, ClientID: c.clientID}, true
}

// hold takes part in the place of a call. It is false if the answer has ended before.
func (x *exchange) hold() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.holders == 0 {
		return false
	}
	x.holders++
	return true
}

// letGo ends what hold began, and frees the place with the last one.
func (x *exchange) letGo() {
	x.mu.Lock()
	x.holders--
	free := x.holders == 0
	x.mu.Unlock()
	if free {
		x.client.freeCall()
	}
}

// bind makes a context of a tool that ends with the request too.
func (x *exchange) bind(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(x.ctx, func() {
		cause := context.Cause(x.ctx)
		if errors.Is(cause, context.Canceled) {
			cause = errGone
		}
		cancel(cause)
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

type exchangeContextKey struct{}

// library puts the library's handler behind the exchange. The library takes who has sent a
// request from its own check of tokens alone: that one gets a header that is always there, and
// the answer that was found already. The token itself goes no further: no tool sees it.
func library(stateless bool, cfg Config) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		x, _ := r.Context().Value(exchangeContextKey{}).(*exchange)
		return x.server
	}, &mcp.StreamableHTTPOptions{
		Stateless: stateless, Logger: cfg.Logger, MaxRequestBodyBytes: cfg.Limits.MaxBodyBytes,
		PropagateRequestCancellation: true,
		DisableLocalhostProtection:   true, // Host is held against the configuration before
	})
	known := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		x, _ := ctx.Value(exchangeContextKey{}).(*exchange)
		return x.tokenInfo(), nil
	}
	checked := auth.RequireBearerToken(known, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: leeway})
	return checked(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		inner.ServeHTTP(w, r)
	}))
}

// serve hands the request to the library.
func (x *exchange) serve(to http.Handler, w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(context.WithValue(x.ctx, exchangeContextKey{}, x))
	r.Header = r.Header.Clone()
	r.Header.Set("Authorization", "Bearer known")
	r.Header.Del("Cookie")
	to.ServeHTTP(w, r)
}
