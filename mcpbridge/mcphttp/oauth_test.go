package mcphttp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// An issuer is an authorization server, as far as a resource server sees it.
type issuer struct {
	*httptest.Server
	t    *testing.T
	mu   sync.Mutex
	keys map[string]*ecdsa.PrivateKey
	down bool
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t, keys: map[string]*ecdsa.PrivateKey{}}
	i.addKey("one")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys?set=1"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("a key that is shared, which no JWK set should have"), KeyID: "shared"}}}
		for id, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"})
		}
		json.NewEncoder(w).Encode(set)
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) addKey(id string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[id] = key
	return key
}

func (i *issuer) setDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

const resource = "https://mcp.example.com/mcp"

// claims are those of a token that is accepted, with changes.
func (i *issuer) claims(changes map[string]any) map[string]any {
	c := map[string]any{"iss": i.URL, "aud": resource, "sub": "ann", "client_id": "editor", "scope": "mcp:use other", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, id, kind string, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType(jose.ContentType(kind))
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (i *issuer) token(changes map[string]any) string {
	return sign(i.t, jose.ES256, i.keys["one"], "one", "at+jwt", i.claims(changes))
}

func (i *issuer) config(c *mcphttp.Config) {
	c.Auth.OAuth = &mcphttp.OAuth{
		Resource: resource, Audiences: []string{"api://mcp"}, Issuer: i.URL, Scopes: []string{"mcp:use"},
		Clients: []mcphttp.Mapping{{Client: "desk", Subject: "ann", ClientID: "editor"}, {Client: "other", ClientID: "robot"}, {Client: "other", Subject: "bob"}},
	}
}

const metadataURL = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"

// Which access tokens are accepted, as whose, and what a client learns that has none.
func TestAccessTokens(t *testing.T) {
	i := newIssuer(t)
	e := serve(t, i.config)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) string { return i.token(map[string]any{name: value}) }
	soon := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	key := i.keys["one"]
	for name, row := range map[string]struct {
		token  string
		status int
		part   string
		code   string // of the challenge
	}{
		"accepted":                  {i.token(nil), 200, "deskann", ""},
		"of a client":               {i.token(map[string]any{"sub": "x", "client_id": "robot"}), 200, "otherx", ""},
		"of a client, in azp":       {i.token(map[string]any{"sub": "x", "client_id": nil, "azp": "robot"}), 200, "otherx", ""},
		"of a person":               {i.token(map[string]any{"sub": "bob", "client_id": "shell"}), 200, "otherbob", ""},
		"scopes in a list":          {i.token(map[string]any{"scope": nil, "scp": []string{"mcp:use"}}), 200, "desk", ""},
		"one of its audiences":      {with("aud", []string{"https://else.example.com", resource + "/"}), 200, "desk", ""},
		"another audience of ours":  {with("aud", "api://mcp"), 200, "desk", ""},
		"without a key id":          {sign(t, jose.ES256, key, "", "at+jwt", i.claims(nil)), 200, "desk", ""},
		"of an older type":          {sign(t, jose.ES256, key, "one", "JWT", i.claims(nil)), 200, "desk", ""},
		"just expired":              {with("exp", soon(-10*time.Second)), 200, "desk", ""},
		"a static one":              {otherToken, 200, "other", ""},
		"expired":                   {with("exp", soon(-2*time.Minute)), 401, "expired", "invalid_token"},
		"that never expires":        {with("exp", nil), 401, "expire", "invalid_token"},
		"not valid yet":             {with("nbf", soon(time.Hour)), 401, "not valid yet", "invalid_token"},
		"of another issuer":         {with("iss", "https://id.example.net"), 401, "issuer", "invalid_token"},
		"of no issuer":              {with("iss", nil), 401, "issuer", "invalid_token"},
		"for another audience":      {with("aud", "https://else.example.com/mcp"), 401, "audience", "invalid_token"},
		"for a longer audience":     {with("aud", resource+"2"), 401, "audience", "invalid_token"},
		"for no audience":           {with("aud", nil), 401, "audience", "invalid_token"},
		"without the scope":         {with("scope", "mcp:user"), 403, "lacks a scope", "insufficient_scope"},
		"of nobody":                 {i.token(map[string]any{"sub": "eve", "client_id": "editor"}), 403, "nobody's", ""},
		"of a stranger's key":       {sign(t, jose.ES256, stranger, "one", "at+jwt", i.claims(nil)), 401, "key of the issuer", "invalid_token"},
		"of an unknown key":         {sign(t, jose.ES256, stranger, "two", "at+jwt", i.claims(nil)), 401, "key of the issuer", "invalid_token"},
		"of a shared key":           {sign(t, jose.HS256, []byte("a key that is shared, which no JWK set should have"), "shared", "at+jwt", i.claims(nil)), 401, "algorithm", "invalid_token"},
		"that is an identity token": {sign(t, jose.ES256, key, "one", "id+jwt", i.claims(nil)), 401, "type", "invalid_token"},
		"unsigned":                  {"eyJhbGciOiJub25lIn0." + strings.Split(i.token(nil), ".")[1] + ".", 401, "algorithm", "invalid_token"},
		"cut":                       {i.token(nil)[:100], 401, "not known", "invalid_token"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := e.do(modernCall(row.token, "whoami", "{}"))
			wants(t, resp, row.status, row.part)
			challenge := resp.Header.Get("WWW-Authenticate")
			if row.code != "" && (!strings.Contains(challenge, `error="`+row.code+`"`) || !strings.Contains(challenge, `resource_metadata="`+metadataURL+`"`)) {
				t.Error(challenge)
			}
		})
	}
	resp := e.do(modernCall("", "whoami", "{}"))
	wants(t, resp, http.StatusUnauthorized, "required")
	if got := resp.Header.Get("WWW-Authenticate"); got != `Bearer resource_metadata="`+metadataURL+`", scope="mcp:use"` {
		t.Error(got)
	}
}

// Anybody may read where tokens are to be had (RFC 9728).
func TestProtectedResourceMetadata(t *testing.T) {
	i := newIssuer(t)
	e := serve(t, i.config, withTLS)
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"} {
		resp := e.do(request{method: http.MethodGet, path: path, host: "mcp.example.com"})
		var got struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal([]byte(body(t, resp)), &got); err != nil || got.Resource != resource || len(got.Servers) != 1 || got.Servers[0] != i.URL || len(got.Scopes) != 1 {
			t.Errorf("%s: %s, %v, %+v", path, resp.Status, err, got)
		}
	}
	wants(t, e.do(request{method: http.MethodGet, path: "/.well-known/oauth-protected-resource", host: "evil.example.net"}), http.StatusForbidden, "Host")
	wants(t, serve(t, nil).do(request{method: http.MethodGet, path: "/.well-known/oauth-protected-resource"}), http.StatusNotFound, "")
}

// A session goes on with a renewed token, and is nobody else's, be it the same client's.
func TestSessionOfAnAccessToken(t *testing.T) {
	i := newIssuer(t)
	e := serve(t, i.config)
	session := e.begin(i.token(map[string]any{"client_id": "robot", "sub": "x"}))
	call := func(token string) *http.Response { return e.do(legacyCall(token, session, "1", "whoami")) }
	wants(t, call(i.token(map[string]any{"client_id": "robot", "sub": "x", "jti": "another"})), http.StatusOK, "otherx")
	wants(t, call(i.token(map[string]any{"client_id": "robot", "sub": "y"})), http.StatusNotFound, "no such session")
	wants(t, call(i.token(map[string]any{"sub": "bob"})), http.StatusNotFound, "no such session")
	wants(t, call(otherToken), http.StatusNotFound, "no such session")
	wants(t, call(i.token(nil)), http.StatusNotFound, "no such session")
}

// A key that the issuer has begun to use is found. Without the issuer, tokens of keys that are
// known go on, others wait, and static ones do not depend on it.
func TestIssuerThatChanges(t *testing.T) {
	i := newIssuer(t)
	i.setDown(true)
	began := time.Now()
	e := serve(t, i.config)
	eventually.Holds(t, "the issuer is away", func() bool { _, err := e.handler.IssuerFault(); return err != nil })
	if since, err := e.handler.IssuerFault(); since.Before(began) || !strings.Contains(err.Error(), "502") {
		t.Error(since, err)
	}
	resp := e.do(modernCall(i.token(nil), "whoami", "{}"))
	wants(t, resp, http.StatusServiceUnavailable, "cannot be checked now")
	if resp.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	wants(t, e.do(modernCall(deskToken, "whoami", "{}")), http.StatusOK, "desk")
	i.setDown(false)
	eventually.Holds(t, "the issuer is back", func() bool { _, err := e.handler.IssuerFault(); return err == nil })
	wants(t, e.do(modernCall(i.token(nil), "whoami", "{}")), http.StatusOK, "desk")
	if log := e.log.String(); strings.Count(log, "cannot be had") != 1 || strings.Count(log, "can be had again") != 1 {
		t.Error(log)
	}
	// Other settings of the same issuer keep its keys.
	i.setDown(true)
	auth := tokens()
	cfg := mcphttp.Config{Auth: auth}
	i.config(&cfg)
	cfg.Auth.OAuth.Scopes = nil
	if err := e.handler.SetAuth(cfg.Auth); err != nil {
		t.Fatal(err)
	}
	wants(t, e.do(modernCall(i.token(map[string]any{"scope": nil}), "whoami", "{}")), http.StatusOK, "desk")
	if err := e.handler.SetAuth(auth); err != nil {
		t.Fatal(err)
	}
	wants(t, e.do(modernCall(i.token(nil), "whoami", "{}")), http.StatusUnauthorized, "not known")
}
