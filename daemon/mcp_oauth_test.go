package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/oauthtest"
)

// protectedCaller starts an agent whose face takes the tokens of an authorization server: those of
// the client editor are good for all that the agent may call, those of robot for nothing. It
// returns where the face is.
func protectedCaller(t *testing.T, s *oauthtest.Server) (caller *daemon.Daemon, cfg daemon.Config, url string) {
	t.Helper()
	block := func(resource string) string {
		return fmt.Sprintf("name: caller\nmcp:\n  listen: '127.0.0.1:0'\n  oauth: {issuer: '%s', resource: '%s', scopes: [use]}\n"+
			"  clients: [{name: editor, clientId: editor, subject: ann}, {name: robot, clientId: robot}]\n"+
			"permissions: {allow: ['MCP:**'], deny: ['MCP:robot/**']}\n", s.URL, resource)
	}
	all := files()
	all["caller/agent.yaml"] = block("http://127.0.0.1/mcp")
	cfg = withGo(load(t, all))
	f := startFleet(t, cfg)
	t.Cleanup(func() { stop(t, f) })
	caller, _ = f.Daemon("caller")
	// Which port it has is known now, and the server keeps it.
	url = caller.Status().MCPServers[0]
	rewrite(t, cfg, "caller/agent.yaml", block(url))
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	return caller, cfg, url
}

// editor is a client of the protocol's library, whose person logs in.
func editor(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	direct := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}
	page := *direct
	page.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "editor"}, RedirectURL: "http://127.0.0.1/callback", Client: direct,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
			if err != nil {
				return nil, err
			}
			resp, err := page.Do(req)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			back, err := resp.Location()
			if err != nil {
				return nil, err
			}
			q := back.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: direct, OAuthHandler: h}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(); direct.CloseIdleConnections() })
	return session
}

// A client finds the authorization server by what the face says, logs in, and calls as itself, in
// permissions and in records. It goes on when the issuer has changed its keys.
func TestMCPClientsThatLogIn(t *testing.T) {
	t.Parallel()
	s := oauthtest.New(t)
	const secret = "the secret of the robot"
	s.Clients["editor"], s.Clients["robot"] = oauthtest.Client{}, oauthtest.Client{Secret: secret}
	_, cfg, url := protectedCaller(t, s)
	session := editor(t, url)
	call := func() (string, error) {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "callee__go", Arguments: json.RawMessage(`{"n":1}`)})
		if err != nil {
			return "", err
		}
		return r.Content[0].(*mcp.TextContent).Text, nil
	}
	if got, err := call(); err != nil || got != answered {
		t.Fatalf("%s, %v", got, err)
	}
	eventually.Holds(t, "the call is recorded as the client's", func() bool {
		for _, body := range ofKind(t, cfg, "caller", auditchain.KindRPCCall) {
			if body["origin"] == "MCP:editor" {
				return true
			}
		}
		return false
	})
	s.Rotate()
	if got, err := call(); err != nil || got != answered {
		t.Errorf("after the issuer has changed its keys: %s, %v", got, err)
	}
	// Another client of the same issuer, by the same face, has what its own rules allow.
	policy := func() (netguard.Policy, error) {
		return netguard.Policy{Hosts: []string{strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")}, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, nil
	}
	robot := mcpauth.NewMachine(mcpauth.Config{
		Name: "face", URL: url, Policy: policy, Issuer: s.URL, ClientID: "robot", Secret: func() (string, error) { return secret, nil },
	})
	list, err := mcpclient.List(t.Context(), mcpclient.Options{Name: "face", URL: &mcpclient.Endpoint{URL: url, Policy: policy, Auth: robot}})
	if err != nil || len(list.Tools) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Which tokens are refused, and what the client learns. A session is nobody's but its client's.
func TestMCPTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	s, other := oauthtest.New(t), oauthtest.New(t)
	_, _, url := protectedCaller(t, s)
	good := map[string]any{"aud": url, "client_id": "editor", "scope": "use"}
	with := func(name string, value any) map[string]any {
		c := map[string]any{name: value}
		for k, v := range good {
			if k != name {
				c[k] = v
			}
		}
		return c
	}
	metadata := strings.TrimSuffix(url, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
	session := ""
	const challenged, invalid = `Bearer resource_metadata="`, `error="invalid_token"`
	for _, row := range []struct {
		name, token, session string
		status               int
		challenge            string // a part of it
	}{
		{"good", s.Sign(good), "", 200, ""},
		{"good, in its session", s.Sign(good), "its", 200, ""},
		{"none", "", "", 401, challenged + metadata},
		{"wrong audience", s.Sign(with("aud", "https://else.example.com/mcp")), "", 401, invalid},
		{"no audience", s.Sign(with("aud", nil)), "", 401, invalid},
		{"expired", s.Sign(with("exp", time.Now().Add(-time.Hour).Unix())), "", 401, invalid},
		{"other issuer", other.Sign(good), "", 401, invalid},
		{"other issuer's key", other.Sign(with("iss", s.URL)), "", 401, invalid},
		{"no scope", s.Sign(with("scope", "read")), "", 403, `error="insufficient_scope"`},
		{"of an unknown client", s.Sign(with("client_id", "eve")), "", 403, ""},
		{"of another person", s.Sign(with("sub", "eve")), "", 403, ""},
		{"of another client, in the session", s.Sign(with("client_id", "robot")), "its", 404, ""},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		if row.session != "" {
			body = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if row.token != "" {
			req.Header.Set("Authorization", "Bearer "+row.token)
		}
		if row.session != "" {
			req.Header.Set("Mcp-Session-Id", session)
			req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		challenge := resp.Header.Get("WWW-Authenticate")
		if err != nil || resp.StatusCode != row.status || !strings.Contains(challenge, row.challenge) || (row.challenge == "") != (challenge == "") {
			t.Errorf("%s: %s, %s, %s, %v", row.name, resp.Status, challenge, text, err)
		}
		if row.challenge != "" && !strings.Contains(challenge, `resource_metadata="`+metadata+`"`) {
			t.Errorf("%s: %s", row.name, challenge)
		}
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" && session == "" {
			session = id
		}
	}
}

// While the issuer is away, the status says whom that concerns, until it is back. Clients whose
// keys are known go on, and others are told to come again.
func TestMCPIssuerAway(t *testing.T) {
	t.Parallel()
	s := oauthtest.New(t)
	caller, _, url := protectedCaller(t, s)
	claims := map[string]any{"aud": url, "client_id": "editor", "scope": "use"}
	ask := func(token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	away := func() error {
		status := caller.Status()
		for _, c := range status.Conditions {
			if c.Kind == health.Issuer && c.Subject == s.URL && c.Advisory && status.Ready {
				return nil
			}
		}
		return fmt.Errorf("%+v", control.Status{Conditions: status.Conditions, Ready: status.Ready})
	}
	known := s.Sign(claims)
	if got := ask(known); got != http.StatusOK {
		t.Fatal(got)
	}
	if away() == nil {
		t.Error("an issuer that is there is away")
	}
	s.SetDown(true)
	s.Rotate()
	fresh := s.Sign(claims)
	if got := ask(fresh); got != http.StatusServiceUnavailable {
		t.Errorf("a key that is not known: %d", got)
	}
	if got := ask(known); got != http.StatusOK {
		t.Errorf("a key that is known: %d", got)
	}
	if err := away(); err != nil {
		t.Error(err)
	}
	s.SetDown(false)
	eventually.Succeeds(t, "the issuer is back", func() error {
		if got := ask(fresh); got != http.StatusOK {
			return fmt.Errorf("%d", got)
		}
		if away() == nil {
			return errors.New("it is away")
		}
		return nil
	})
}

// An issuer that was away is back with the server that a reload makes, whatever the one before has
// seen of it.
func TestMCPIssuerAwayOverAReload(t *testing.T) {
	t.Parallel()
	s := oauthtest.New(t)
	caller, cfg, _ := protectedCaller(t, s)
	before, err := os.ReadFile(filepath.Join(cfg.Fleet.Root, "caller", "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	reload := func(text string) {
		t.Helper()
		rewrite(t, cfg, "caller/agent.yaml", text)
		if err := caller.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	away := func() bool {
		return slices.ContainsFunc(caller.Status().Conditions, func(c health.Condition) bool { return c.Kind == health.Issuer })
	}
	s.SetDown(true)
	reload(strings.Replace(string(before), "mcp:\n", "mcp:\n  origins: ['https://pages.example.com']\n", 1))
	eventually.Holds(t, "the issuer is away", away)
	s.SetDown(false)
	reload(string(before))
	eventually.Holds(t, "the issuer is back", func() bool { return !away() })
}
