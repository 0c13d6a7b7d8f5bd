package mcpauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/oauthtest"
)

// A trap is a host that nobody should send anything to.
type trap struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newTrap(t *testing.T) *trap {
	p := &trap{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, fmt.Sprint(r.Method, r.URL, r.Header, string(body)))
		http.NotFound(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *trap) caught() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.seen, "\n")
}

// What a hostile server or authorization server says, and what becomes of it.
func TestHostile(t *testing.T) {
	const resource, meta = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
	for name, row := range map[string]struct {
		path string
		// says changes the document there, does answers in its place.
		says func(document map[string]any, other string)
		does func(w http.ResponseWriter, r *http.Request, other string)
		want string
	}{
		"endless resource metadata":    {path: resource, does: endless, want: "more than 1048576 bytes"},
		"endless server metadata":      {path: meta, does: endless, want: "more than 1048576 bytes"},
		"endless tokens":               {path: "/token", does: endless, want: "more than 1048576 bytes"},
		"resource metadata elsewhere":  {path: resource, does: redirects, want: "redirects"},
		"server metadata elsewhere":    {path: meta, does: redirects, want: "redirects"},
		"tokens elsewhere":             {path: "/token", does: redirects, want: "redirects"},
		"redirected to this network":   {path: meta, does: inward, want: "redirects"},
		"metadata of another resource": {path: resource, says: set("resource", "https://bank.example.com/mcp"), want: "for another resource"},
		"a resource that is longer":    {path: resource, says: func(d map[string]any, _ string) { d["resource"] = d["resource"].(string) + "/deeper" }, want: "for another resource"},
		"no authorization server":      {path: resource, says: set("authorization_servers", []string{}), want: "does not say where its tokens are had"},
		"server in a file":             {path: resource, says: set("authorization_servers", []string{"file:///etc/passwd"}), want: "no URL by https"},
		"server without encryption":    {path: resource, says: set("authorization_servers", []string{"http://login.example.com"}), want: "no URL by https"},
		"server in this network":       {path: resource, says: set("authorization_servers", []string{"https://169.254.169.254"}), want: "not on the public internet"},
		"metadata of another issuer":   {path: meta, says: set("issuer", "https://login.example.com"), want: "that of another issuer"},
		"token endpoint in a file":     {path: meta, says: set("token_endpoint", "file:///etc/passwd"), want: "token endpoint of the MCP server issues cannot be used"},
		"tokens without encryption":    {path: meta, says: set("token_endpoint", "http://login.example.com/token"), want: "without encryption"},
		"tokens in this network":       {path: meta, says: set("token_endpoint", "https://10.0.0.1/token"), want: "not on the public internet"},
		"no token endpoint":            {path: meta, says: set("token_endpoint", ""), want: "cannot be used"},
		"a page that is a script":      {path: meta, says: set("authorization_endpoint", "javascript:alert(1)"), want: "cannot be used"},
		"a page in a file":             {path: meta, says: set("authorization_endpoint", "file:///bin/sh"), want: "cannot be used"},
		"a page for the terminal":      {path: meta, says: set("authorization_endpoint", "https://login.example.com/\u009b2J"), want: "characters that URLs do not have"},
		"registration in this network": {path: meta, says: set("registration_endpoint", "https://192.168.0.1/"), want: "not on the public internet"},
		"no PKCE":                      {path: meta, says: set("code_challenge_methods_supported", nil), want: "PKCE"},
		"plain PKCE":                   {path: meta, says: set("code_challenge_methods_supported", []string{"plain"}), want: "PKCE"},
		"tokens of another kind":       {path: "/token", says: set("token_type", "DPoP"), want: "another type"},
		"a token that is two headers":  {path: "/token", says: set("access_token", "a\r\nX-Admin: 1"), want: "no token that a header can have"},
		"no token":                     {path: "/token", says: set("access_token", nil), want: "no token that a header can have"},
		"an error that tells":          {path: "/token", does: tells, want: "token endpoint of the MCP server issues refuses: invalid_request"},
		"an error that is a page":      {path: "/token", does: tellsPage, want: "answers 400"},
		"a page where JSON is due":     {path: meta, does: html, want: "no JSON document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTrap(t)
			s := oauthtest.New(t)
			r := s.Protect(page, "read")
			change := func(w http.ResponseWriter, req *http.Request, next func(http.ResponseWriter)) {
				switch {
				case !strings.HasPrefix(req.URL.Path, row.path):
					next(w)
				case row.does != nil:
					row.does(w, req, p.URL)
				default:
					rec := httptest.NewRecorder()
					next(rec)
					var document map[string]any
					if err := json.Unmarshal(rec.Body.Bytes(), &document); err != nil {
						t.Error(err, rec.Body)
					}
					row.says(document, p.URL)
					w.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(w).Encode(document)
				}
			}
			front := between(t, s, r, change)
			c, st := mcpauth.Config{Name: "issues", URL: front + "/mcp", Policy: house}, store(t)
			err := logIn(t, c, st, mcpauth.Challenge{})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v", err)
			}
			if err != nil && (strings.Contains(err.Error(), "code_verifier")) {
				t.Errorf("the error has what was sent: %v", err)
			}
			if seen := p.caught(); seen != "" {
				t.Errorf("another host has got %s", seen)
			}
			if state, err := c.LoginState(st); state != nil || err != nil {
				t.Errorf("%+v, %v", state, err)
			}
		})
	}
}

func set(name string, value any) func(map[string]any, string) {
	return func(d map[string]any, _ string) { d[name] = value }
}

func endless(w http.ResponseWriter, _ *http.Request, _ string) {
	w.Header().Set("Content-Type", "application/json")
	for line := `{"issuer":"` + strings.Repeat("x", 64<<10); ; {
		if _, err := io.WriteString(w, line); err != nil {
			return
		}
	}
}

func redirects(w http.ResponseWriter, r *http.Request, other string) {
	http.Redirect(w, r, other, http.StatusTemporaryRedirect)
}

func inward(w http.ResponseWriter, r *http.Request, _ string) {
	http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
}

func tells(w http.ResponseWriter, r *http.Request, _ string) {
	_ = r.ParseForm()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_request", "error_description": "code_verifier " + r.PostForm.Get("code_verifier")})
}

func tellsPage(w http.ResponseWriter, r *http.Request, _ string) {
	_ = r.ParseForm()
	http.Error(w, "code_verifier "+r.PostForm.Get("code_verifier"), http.StatusBadRequest)
}

func html(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, "<html>") }

// between serves a resource and its authorization server at one origin, each answer changed.
func between(t *testing.T, s *oauthtest.Server, r *oauthtest.Resource, change func(http.ResponseWriter, *http.Request, func(http.ResponseWriter))) string {
	t.Helper()
	var front string
	pass := func(base string, req *http.Request) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			u, err := url.Parse(base + req.URL.RequestURI())
			if err != nil {
				t.Error(err)
				return
			}
			out := req.Clone(req.Context())
			out.RequestURI, out.URL, out.Host = "", u, u.Host
			out.Header.Del("Accept-Encoding")
			resp, err := http.DefaultTransport.RoundTrip(out)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			for name, values := range resp.Header {
				if name != "Content-Length" {
					w.Header()[name] = values
				}
			}
			w.WriteHeader(resp.StatusCode)
			text := strings.ReplaceAll(string(body), s.URL, front)
			_, _ = io.WriteString(w, strings.ReplaceAll(text, strings.TrimSuffix(r.URL, "/mcp"), front))
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		base := s.URL
		if req.URL.Path == "/mcp" || strings.HasPrefix(req.URL.Path, "/.well-known/oauth-protected-resource") {
			base = strings.TrimSuffix(r.URL, "/mcp")
		}
		change(w, req, pass(base, req))
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	front = server.URL
	// The answer to a login names the issuer by which it is known here.
	before := s.Authorized
	s.Authorized = func(q url.Values) {
		if q.Has("iss") {
			q.Set("iss", front)
		}
		if before != nil {
			before(q)
		}
	}
	return front
}

// The row of the table that every other one differs from in one document.
func TestTheSameWithoutHostility(t *testing.T) {
	s := oauthtest.New(t)
	r := s.Protect(page, "read")
	front := between(t, s, r, func(w http.ResponseWriter, _ *http.Request, next func(http.ResponseWriter)) { next(w) })
	if err := logIn(t, mcpauth.Config{Name: "issues", URL: front + "/mcp", Policy: house}, store(t), mcpauth.Challenge{}); err != nil {
		t.Error(err)
	}
}

// The answer to a login is that of the authorization server where it began, or none (RFC 9207).
func TestMixedUpIssuers(t *testing.T) {
	for name, row := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"another issuer":          {func(q url.Values) { q.Set("iss", "https://login.example.com") }, "that of another issuer"},
		"a slash more":            {func(q url.Values) { q.Set("iss", q.Get("iss")+"/") }, "that of another issuer"},
		"no issuer":               {func(q url.Values) { q.Del("iss") }, "does not name its issuer"},
		"two issuers":             {func(q url.Values) { q.Add("iss", q.Get("iss")) }, "that of another issuer"},
		"an error of another":     {func(q url.Values) { q.Set("iss", "https://login.example.com"); q.Set("error", "access_denied") }, "that of another issuer"},
		"an error":                {func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, "refuses: access_denied"},
		"an error that is a text": {func(q url.Values) { q.Set("error", "<b>call 555-0100</b>") }, "refuses: an error"},
		"no code":                 {func(q url.Values) { q.Del("code") }, "has no code"},
		"another's code":          {func(q url.Values) { q.Set("code", "another's") }, "refuses: invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			s := oauthtest.New(t)
			s.Authorized = row.change
			r := s.Protect(page)
			if err := logIn(t, config(r), store(t), probe(t, r)); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What others send to where the browser comes back to ends no login, and takes none over.
func TestStrangersAtTheCallback(t *testing.T) {
	s := oauthtest.New(t)
	r := s.Protect(page)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := config(r)
	err := c.Login(ctx, store(t), probe(t, r), mcpauth.Interaction{Open: func(at string) error {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		back := u.Query().Get("redirect_uri")
		for _, query := range []string{"?code=mine", "?code=mine&state=guessed", "?error=access_denied", "?state=&code=mine"} {
			resp, err := http.Get(back + query)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: %s", query, resp.Status)
			}
		}
		return oauthtest.Browse(at)
	}})
	if err != nil {
		t.Error(err)
	}
}

// A challenge that leads to another host is not followed.
func TestChallengeThatLeadsElsewhere(t *testing.T) {
	p := newTrap(t)
	s := oauthtest.New(t)
	r := s.Protect(page)
	for _, at := range []string{p.URL + "/.well-known/oauth-protected-resource", "file:///etc/passwd", "https://169.254.169.254/"} {
		err := logIn(t, config(r), store(t), mcpauth.Challenge{Metadata: at})
		wants(t, err, mcpauth.Wrong, "at another host")
	}
	if seen := p.caught(); seen != "" {
		t.Error(seen)
	}
}
