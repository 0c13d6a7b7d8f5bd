package mcphttp_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// elsewhere is a listener that seems to be at another address than a loopback one.
type elsewhere struct{ net.Listener }

type elsewhereConn struct{ net.Conn }

func (l elsewhere) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return elsewhereConn{conn}, err
}

func (elsewhereConn) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8443}
}

func inPlain(s *httptest.Server) { s.Listener = elsewhere{s.Listener} }

func withTLS(s *httptest.Server) {
	s.Listener = elsewhere{s.Listener}
	s.StartTLS()
}

// Host and Origin decide before anything else does, whatever the method.
func TestHostAndOrigin(t *testing.T) {
	listed := func(c *mcphttp.Config) {
		c.Hosts = []string{"mcp.example.com", "MCP.example.org:8443"}
		c.Origins = []string{"https://app.example.com"}
	}
	local, plain, secure := serve(t, listed), serve(t, listed, inPlain), serve(t, listed, withTLS)
	port := local.Listener.Addr().String()
	port = port[strings.LastIndexByte(port, ':'):]
	origin := func(values ...string) map[string][]string { return map[string][]string{"Origin": values} }
	for name, row := range map[string]struct {
		e      *endpoint
		host   string
		header map[string][]string
		part   string // of the refusal
	}{
		"loopback":                     {local, "", nil, ""},
		"localhost":                    {local, "localhost" + port, nil, ""},
		"IPv6":                         {local, "[::1]" + port, nil, ""},
		"a listed name on loopback":    {local, "mcp.example.com", nil, ""},
		"rebound name":                 {local, "evil.example.net" + port, nil, "Host"},
		"rebound name, own origin":     {local, "evil.example.net", origin("http://evil.example.net"), "Host"},
		"a name that begins alike":     {local, "localhost.evil.example.net", nil, "Host"},
		"own origin":                   {local, "localhost" + port, origin("http://localhost" + port), ""},
		"listed origin":                {local, "", origin("https://app.example.com"), ""},
		"evil origin":                  {local, "", origin("https://evil.example.net"), "Origin"},
		"origin of another local port": {local, "localhost" + port, origin("http://localhost:1"), "Origin"},
		"origin null":                  {local, "", origin("null"), "Origin"},
		"two origins":                  {local, "", origin("https://app.example.com", "https://evil.example.net"), "more than once"},
		"cross-site, no origin":        {local, "", map[string][]string{"Sec-Fetch-Site": {"cross-site"}}, "Origin"},
		"same site, another origin":    {local, "", map[string][]string{"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://localhost:1"}}, "Origin"},
		"without TLS":                  {plain, "mcp.example.com", nil, "TLS"},
		"with TLS":                     {secure, "mcp.example.com", nil, ""},
		"with TLS, any port":           {secure, "mcp.example.com:9", nil, ""},
		"with TLS, the port":           {secure, "mcp.example.org:8443", nil, ""},
		"with TLS, another port":       {secure, "mcp.example.org:9", nil, "Host"},
		"with TLS, an address":         {secure, "192.0.2.1:8443", nil, "Host"},
		"with TLS, localhost":          {secure, "localhost", nil, "Host"},
		"with TLS, evil origin":        {secure, "mcp.example.com", origin("https://evil.example.net"), "Origin"},
	} {
		t.Run(name, func(t *testing.T) {
			r := modernCall(deskToken, "whoami", "{}")
			for header, values := range row.header {
				r.header[header] = values
			}
			r.host = row.host
			status := http.StatusOK
			switch {
			case row.part == "more than once":
				status = http.StatusBadRequest
			case row.part != "":
				status = http.StatusForbidden
			}
			wants(t, row.e.do(r), status, row.part)
			if status != http.StatusOK {
				for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodOptions} {
					resp := row.e.do(request{method: method, host: row.host, token: deskToken, header: row.header})
					wants(t, resp, status, row.part)
				}
			}
		})
	}
}

// A listed page may read answers, after the question that its browser asks first. No other may.
func TestPagesOfListedOrigins(t *testing.T) {
	e := serve(t, func(c *mcphttp.Config) { c.Origins = []string{"https://app.example.com"} })
	preflight := request{method: http.MethodOptions, header: map[string][]string{
		"Origin": {"https://app.example.com"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization, mcp-method"},
	}}
	for _, r := range []request{preflight, {method: http.MethodPost, body: "{}", header: map[string][]string{"Origin": {"https://app.example.com"}}}} {
		resp := e.do(r)
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "https://app.example.com" {
			t.Errorf("%s: %q", r.method, got)
		}
		if got := resp.Header.Get("Access-Control-Allow-Headers"); r.method == http.MethodOptions && (got != "authorization, mcp-method" || resp.StatusCode != http.StatusNoContent) {
			t.Error(resp.Status, got)
		}
	}
	resp := e.do(request{method: http.MethodOptions, header: map[string][]string{"Origin": {e.URL}}})
	if resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("a page that is not listed may read answers")
	}
}

func TestTokens(t *testing.T) {
	e := serve(t, nil)
	for name, header := range map[string]string{
		"none": "", "empty": "Bearer ", "another scheme": "Basic " + deskToken, "half": "Bearer " + deskToken[:16], "more": "Bearer " + deskToken + "0",
		"two": "Bearer " + deskToken + " " + otherToken, "quoted": `Bearer "` + deskToken + `"`, "unknown": "Bearer " + strings.Repeat("4f", 16),
		"case": "Bearer " + strings.ToUpper(deskToken),
	} {
		t.Run(name, func(t *testing.T) {
			r := modernCall("", "whoami", "{}")
			if header != "" {
				r.header["Authorization"] = []string{header}
			}
			resp := e.do(r)
			wants(t, resp, http.StatusUnauthorized, "token")
			if got := resp.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") || strings.Contains(got, "resource_metadata") {
				t.Error(got)
			}
		})
	}
	for token, client := range map[string]string{deskToken: "desk", spareToken: "desk", otherToken: "other"} {
		wants(t, e.do(modernCall(token, "whoami", "{}")), http.StatusOK, client)
	}
	inQuery := modernCall("", "whoami", "{}")
	inQuery.path = "/mcp?access_token=" + deskToken
	wants(t, e.do(inQuery), http.StatusUnauthorized, "token")
	small := modernCall("", "whoami", "{}")
	small.header["Authorization"] = []string{"bearer " + deskToken}
	wants(t, e.do(small), http.StatusOK, "desk")
}

// Nobody in particular is somebody only where no stranger can be.
func TestAnonymous(t *testing.T) {
	auth := mcphttp.Auth{Anonymous: "desk", Tokens: []mcphttp.Token{{Client: "other", Secret: otherToken}}}
	listed := func(c *mcphttp.Config) { c.Auth, c.Hosts = auth, []string{"mcp.example.com"} }
	local, secure := serve(t, listed), serve(t, listed, withTLS)
	wants(t, local.do(modernCall("", "whoami", "{}")), http.StatusOK, "desk")
	wants(t, local.do(modernCall(otherToken, "whoami", "{}")), http.StatusOK, "other")
	wants(t, local.do(modernCall(deskToken, "whoami", "{}")), http.StatusUnauthorized, "not known")
	for _, forwarded := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		r := modernCall("", "whoami", "{}")
		r.header[forwarded] = []string{"192.0.2.7"}
		wants(t, local.do(r), http.StatusUnauthorized, "token")
	}
	for _, e := range []*endpoint{local, secure} {
		r := modernCall("", "whoami", "{}")
		r.host = "mcp.example.com"
		wants(t, e.do(r), http.StatusUnauthorized, "token")
	}
}

// A client for whom there is no server learns no more than that.
func TestClientWithoutServer(t *testing.T) {
	e := serve(t, func(c *mcphttp.Config) { c.Auth = mcphttp.Auth{Anonymous: "nobody"} })
	wants(t, e.do(modernCall("", "whoami", "{}")), http.StatusServiceUnavailable, "nothing can be served to this client now")
	if !strings.Contains(e.log.String(), "a secret reason") {
		t.Error("nobody is told why")
	}
}

// What began with a token ends with it; what began with another goes on.
func TestSetAuth(t *testing.T) {
	e := serve(t, nil)
	kept, gone := e.begin(deskToken), e.begin(spareToken)
	go e.try(t.Context(), legacyCall(deskToken, kept, "1", "wait"))
	receive(t, e.tools.started)
	go e.try(t.Context(), legacyCall(spareToken, gone, "1", "wait"))
	receive(t, e.tools.started)
	go e.try(t.Context(), modernCall(otherToken, "wait", "{}"))
	receive(t, e.tools.started)
	if err := e.handler.SetAuth(mcphttp.Auth{Tokens: []mcphttp.Token{{Client: "desk", Secret: "short"}}}); err == nil {
		t.Error("a weak token is taken")
	}
	if err := e.handler.SetAuth(mcphttp.Auth{Tokens: []mcphttp.Token{{Client: "desk", Secret: deskToken}}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if cause := receive(t, e.tools.ended); cause == nil {
			t.Error("no cause")
		}
	}
	select {
	case cause := <-e.tools.ended:
		t.Error("the call of a token that is still accepted ended: ", cause)
	default:
	}
	if !e.alive(deskToken, kept) {
		t.Error("the session of a token that is still accepted is gone")
	}
	wants(t, e.do(modernCall(spareToken, "whoami", "{}")), http.StatusUnauthorized, "not known")
	if err := e.handler.SetAuth(tokens()); err != nil {
		t.Fatal(err)
	}
	if e.alive(spareToken, gone) {
		t.Error("a session outlived its token")
	}
}

// A token that is taken away while a request with it is on its way in is not accepted.
func TestTokenThatGoesMeanwhile(t *testing.T) {
	var e *endpoint
	e = serve(t, func(c *mcphttp.Config) {
		inner := c.Server
		c.Server = func(client string) (*mcp.Server, error) { // it is called after the token was found
			if client == "other" {
				if err := e.handler.SetAuth(mcphttp.Auth{Tokens: []mcphttp.Token{{Client: "desk", Secret: deskToken}}}); err != nil {
					t.Error(err)
				}
			}
			return inner(client)
		}
	})
	wants(t, e.do(modernCall(otherToken, "whoami", "{}")), http.StatusUnauthorized, "not known")
	wants(t, e.do(modernCall(deskToken, "whoami", "{}")), http.StatusOK, "desk")
}

func TestConfigFaults(t *testing.T) {
	for field, change := range map[string]func(*mcphttp.Config){
		"Server":                   func(c *mcphttp.Config) { c.Server = nil },
		"Logger":                   func(c *mcphttp.Config) { c.Logger = nil },
		"Path":                     func(c *mcphttp.Config) { c.Path = "mcp" },
		"Hosts[0]":                 func(c *mcphttp.Config) { c.Hosts = []string{"https://mcp.example.com"} },
		"Origins[0]":               func(c *mcphttp.Config) { c.Origins = []string{"app.example.com"} },
		"Limits.MaxPending":        func(c *mcphttp.Config) { c.Limits.MaxPending = -1 },
		"Auth":                     func(c *mcphttp.Config) { c.Auth = mcphttp.Auth{} },
		"Auth.Anonymous":           func(c *mcphttp.Config) { c.Auth.Anonymous = "Desk" },
		"Auth.Tokens[0].Client":    func(c *mcphttp.Config) { c.Auth.Tokens[0].Client = "a/b" },
		"Auth.Tokens[2].Secret":    func(c *mcphttp.Config) { c.Auth.Tokens[2].Secret = deskToken },
		"Auth.OAuth.Resource":      func(c *mcphttp.Config) { c.Auth.OAuth.Resource = "http://mcp.example.com/mcp" },
		"Auth.OAuth.Issuer":        func(c *mcphttp.Config) { c.Auth.OAuth.Issuer = "" },
		"Auth.OAuth.KeysURL":       func(c *mcphttp.Config) { c.Auth.OAuth.KeysURL = "ftp://id.example.com/keys" },
		"Auth.OAuth.Algorithms[1]": func(c *mcphttp.Config) { c.Auth.OAuth.Algorithms = []string{"RS256", "HS256"} },
		"Auth.OAuth.Scopes[0]":     func(c *mcphttp.Config) { c.Auth.OAuth.Scopes = []string{"a b"} },
		"Auth.OAuth.Clients":       func(c *mcphttp.Config) { c.Auth.OAuth.Clients = nil },
		"Auth.OAuth.Clients[0]":    func(c *mcphttp.Config) { c.Auth.OAuth.Clients[0].Subject = "" },
	} {
		t.Run(field, func(t *testing.T) {
			cfg := mcphttp.Config{Server: new(tools).server, Auth: tokens(), Logger: slog.New(slog.DiscardHandler)}
			cfg.Auth.OAuth = &mcphttp.OAuth{Resource: "https://mcp.example.com/mcp", Issuer: "https://id.example.com", Clients: []mcphttp.Mapping{{Client: "desk", Subject: "s"}}}
			change(&cfg)
			_, err := mcphttp.New(cfg)
			all := flatten(err)
			if fault, ok := errors.AsType[*mcphttp.ConfigError](all[0]); !ok || len(all) != 1 || fault.Field != field {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A token that cannot have 128 bits is refused, and no error shows one.
func TestWeakTokens(t *testing.T) {
	for _, secret := range []string{
		"", "secret", strings.Repeat("a", 100), "0123456789012345678901234567890123456"[:37], deskToken[:31], otherToken[:21],
		"abababababababababababababababababababab", "with a space in it, and long enough for anybody", "correct-horse-battery",
	} {
		_, err := mcphttp.New(mcphttp.Config{Auth: mcphttp.Auth{Tokens: []mcphttp.Token{{Client: "desk", Secret: secret}}}})
		var fault *mcphttp.ConfigError
		if !slices.ContainsFunc(flatten(err), func(e error) bool {
			return errors.As(e, &fault) && fault.Field == "Auth.Tokens[0].Secret"
		}) {
			t.Errorf("%q is taken: %v", secret, err)
		}
		if secret != "" && strings.Contains(err.Error(), secret) && secret != "secret" {
			t.Errorf("the error shows the token: %v", err)
		}
	}
}

// flatten returns the errors that err joins.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}

// Other addresses than loopback ones take TLS, names and tokens.
func TestCheck(t *testing.T) {
	loopback, other := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4zero, Port: 1}
	anonymous := serve(t, func(c *mcphttp.Config) {
		c.Auth, c.Hosts = mcphttp.Auth{Anonymous: "desk"}, []string{"mcp.example.com"}
	})
	named := serve(t, func(c *mcphttp.Config) { c.Hosts = []string{"mcp.example.com"} })
	nameless := serve(t, nil)
	for _, row := range []struct {
		e    *endpoint
		addr net.Addr
		tls  bool
		part string
	}{
		{nameless, loopback, false, ""}, {anonymous, loopback, false, ""},
		{named, other, true, ""}, {named, other, false, "TLS"},
		{nameless, other, true, "hosts"}, {anonymous, other, true, "tokens"},
	} {
		err := row.e.handler.Check(row.addr, row.tls)
		if (err == nil) != (row.part == "") || err != nil && !strings.Contains(err.Error(), row.part) {
			t.Errorf("%v, TLS %v: %v, want %q", row.addr, row.tls, err, row.part)
		}
	}
}
