package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/oauthtest"
)

// protected are the options for a server that is protected, and how somebody logs in there.
func protected(t *testing.T, r *oauthtest.Resource) (o mcpclient.Options, logIn func()) {
	t.Helper()
	policy := func() (netguard.Policy, error) {
		return netguard.Policy{
			Hosts:          []string{strings.TrimSuffix(strings.TrimPrefix(r.URL, "http://"), "/mcp")},
			AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		}, nil
	}
	c := mcpauth.Config{Name: "web", URL: r.URL, Policy: policy, Remedy: "agentd mcp login"}
	st := mcpauth.Store{Dir: filepath.Join(t.TempDir(), "logins"), Agent: "agent://desk"}
	o = command(t, "web")
	o.Command = nil
	o.Limits.MaxBackoff = time.Hour // what heals sooner does so for another reason
	o.URL = &mcpclient.Endpoint{URL: r.URL, Policy: policy, Auth: mcpauth.NewPerson(c, st)}
	return o, func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		probe := &mcpauth.Probe{}
		asking := o
		asking.URL = &mcpclient.Endpoint{URL: r.URL, Policy: policy, Auth: probe}
		if _, err := mcpclient.List(ctx, asking); probe.Found() == nil {
			t.Fatal(err)
		}
		if err := c.Login(ctx, st, *probe.Found(), mcpauth.Interaction{Open: oauthtest.Browse}); err != nil {
			t.Fatal(err)
		}
	}
}

// Calls go out once somebody has logged in, for as long as the login lasts, and again after the
// next one. A server that repeats tokens shows them to nobody.
func TestLogins(t *testing.T) {
	for _, era := range []string{mcpclient.Era2025, mcpclient.Era2026} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			s := oauthtest.New(t)
			r := s.Protect(streamable(library(), era), "use")
			o, logIn := protected(t, r)
			said := &logtest.Lines{}
			o.Logger = said.Logger()
			o.Pinned = []mcpclient.Contract{{Name: "echo", Description: "Says what it is told.", InputSchema: json.RawMessage(objectSchema), Annotations: json.RawMessage(`{"idempotentHint":true}`)}}
			o.AcceptDescriptions = true
			o.Judge = func(context.Context, mcpclient.Contract, *mcpclient.Contract) ([]mcpclient.Change, bool) {
				return nil, false
			}
			c := start(t, o)
			refused := func(part string) {
				t.Helper()
				_, e := call(t, c, "echo", `{}`)
				if e == nil || e.Code != mcpclient.Denied || e.Sent || e.Retryable || !strings.Contains(e.Message, part) || !strings.Contains(e.Message, "agentd mcp login") {
					t.Errorf("%+v", e)
				}
			}
			waitFor(t, func() bool { return c.State().NeedsLogin })
			refused("nobody is logged in")
			if len(r.Tokens()) != 0 || s.Requests("/token") != 0 {
				t.Error("a server was asked without a login")
			}
			logIn()
			waitFor(t, func() bool { return c.State().Connected })
			mustCall(t, c, "echo", `{}`)
			s.Rotate() // the token is refused, and renewed within the call
			mustCall(t, c, "echo", `{}`)
			tokens := r.Tokens()
			echoed, _ := json.Marshal(map[string]string{"key": tokens[len(tokens)-1]})
			if got := mustCall(t, c, "echo", string(echoed)); strings.Contains(string(got.Raw), tokens[len(tokens)-1]) {
				t.Errorf("the result has the token: %s", got.Raw)
			}
			r.Require("use", "write")
			refused(`asks for the scope "use write"`)
			r.Require("use")
			mustCall(t, c, "echo", `{}`)
			s.EndLogins()
			s.Rotate()
			refused("the login cannot be renewed: invalid_grant")
			waitFor(t, func() bool { return c.State().NeedsLogin })
			logIn()
			waitFor(t, func() bool { return c.State().Connected })
			mustCall(t, c, "echo", `{}`)
			if said.Count("needs a login") != 4 || said.Count("is back") != 2 { // each line, and its error
				t.Errorf("the log is %s", said.String())
			}
			for _, token := range r.Tokens() {
				if said.Count(token) != 0 {
					t.Errorf("the log has a token: %s", said.String())
				}
			}
		})
	}
}

// A token goes to no other host, and to none by http but this machine.
func TestTokensStay(t *testing.T) {
	var caught atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { caught.Add(1) }))
	t.Cleanup(trap.Close)
	s := oauthtest.New(t)
	inner, away := streamable(library(), mcpclient.Era2026), atomic.Bool{}
	r := s.Protect(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if away.Load() {
			http.Redirect(w, req, trap.URL, http.StatusTemporaryRedirect)
			return
		}
		inner.ServeHTTP(w, req)
	}))
	o, logIn := protected(t, r)
	logIn()
	away.Store(true)
	if _, err := mcpclient.List(t.Context(), o); err == nil || caught.Load() != 0 {
		t.Errorf("%v, %d requests", err, caught.Load())
	}
	away.Store(false)
	if _, err := mcpclient.List(t.Context(), o); err != nil {
		t.Error(err)
	}
	o.URL.URL = "http://mcp.example.com/mcp"
	if _, err := mcpclient.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), "without encryption") {
		t.Errorf("%v", err)
	}
}

// A server that repeats tokens in its errors shows them to nobody: not to callers, not in the state,
// not in the log.
func TestTokensInErrors(t *testing.T) {
	for _, era := range []string{mcpclient.Era2025, mcpclient.Era2026} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			inner, tells := streamable(library(), era), atomic.Pointer[string]{}
			s := oauthtest.New(t)
			r := s.Protect(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				req.Body = io.NopCloser(bytes.NewReader(body))
				var m struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				if method := tells.Load(); method != nil && json.Unmarshal(body, &m) == nil && m.Method == *method {
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not with %s"}}`, m.ID, req.Header.Get("Authorization"))
					return
				}
				inner.ServeHTTP(w, req)
			}))
			o, logIn := protected(t, r)
			o.Era = era
			logIn()
			said := &logtest.Lines{}
			o.Logger = said.Logger()
			hides := func(what, text string) {
				t.Helper()
				if !strings.Contains(text, "not with Bearer") {
					t.Errorf("%s: it is not there: %s", what, text)
				}
				for _, token := range r.Tokens() {
					if strings.Contains(text, token) {
						t.Errorf("%s has the token: %s", what, text)
					}
				}
			}
			pin(t, &o)
			c := start(t, o)
			waitFor(t, func() bool { return c.State().Connected })
			calling, listing := "tools/call", "tools/list"
			tells.Store(&calling)
			_, e := call(t, c, "echo", `{}`)
			if e == nil || e.Code != mcpclient.Refused {
				t.Fatalf("%+v", e)
			}
			hides("the message", e.Message)
			hides("the cause", e.Err.Error())
			tells.Store(&listing)
			away := start(t, o)
			waitFor(t, func() bool { return away.State().Cause != "" })
			hides("the state", away.State().Cause)
			waitFor(t, func() bool { return said.Count("not with Bearer") > 0 })
			hides("the log", said.String())
		})
	}
}

// The log has what is behind a login that cannot be used, which callers do not see.
func TestLoginThatCannotBeRead(t *testing.T) {
	s := oauthtest.New(t)
	r := s.Protect(http.NotFoundHandler())
	o, _ := protected(t, r)
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.URL.Auth = mcpauth.NewPerson(mcpauth.Config{Name: "web", URL: r.URL, Policy: o.URL.Policy}, mcpauth.Store{Dir: filepath.Join(file, "logins"), Agent: "agent://desk"})
	said := &logtest.Lines{}
	o.Logger = said.Logger()
	c := start(t, o)
	waitFor(t, func() bool { return said.Count("not a directory") == 1 })
	if state := c.State(); !state.NeedsLogin || strings.Contains(state.Cause, file) {
		t.Errorf("%+v", state)
	}
}
