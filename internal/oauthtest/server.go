package oauthtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// A Server is an authorization server on this machine. Its tokens are signed JWTs (RFC 9068). Each
// refresh token is good for one use: a second one ends all that came of the login.
type Server struct {
	URL string
	// Person is who agrees to everything at its login page.
	Person string
	// Life is how long access tokens are good. The default is an hour.
	Life time.Duration
	// Clients are those that were registered by hand, with how they prove themselves.
	Clients map[string]Client
	// Metadata, Authorized and Tokens may change its metadata, the query of its answer to a
	// login, and the answers of its token endpoint. They are set before it is used.
	Metadata   func(map[string]any)
	Authorized func(url.Values)
	Tokens     func(grant string, answer map[string]any)

	t testing.TB

	mu       sync.Mutex
	key      *ecdsa.PrivateKey
	keyID    string
	down     bool
	codes    map[string]code
	refresh  map[string]*grant
	used     map[string]*grant // refresh tokens that were exchanged
	requests map[string]int
	ended    map[string]bool // the ids of grants
}

// A Client proves itself by a secret, or by a key that the server knows.
type Client struct {
	Secret string
	Key    *ecdsa.PublicKey
}

type grant struct{ id, client, person, resource, scope string }

type code struct {
	grant
	challenge, redirect string
}

// New returns a server, which stops with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		Person: "ann", Life: time.Hour, Clients: map[string]Client{}, t: t, codes: map[string]code{}, refresh: map[string]*grant{},
		used: map[string]*grant{}, requests: map[string]int{}, ended: map[string]bool{},
	}
	s.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("GET /keys", s.keys)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", s.revoke)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests[r.URL.Path]++
		down := s.down
		s.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s.URL = server.URL
	return s
}

// SetDown has the server answer nothing but errors.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Requests counts the requests for a path.
func (s *Server) Requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[path]
}

// Rotate has the server sign with a new key. It lists the old one no more.
func (s *Server) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.keyID = key, rand.Text()
}

// EndLogins has the server renew no login any more that was made before.
func (s *Server) EndLogins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.refresh {
		s.ended[g.id] = true
	}
}

// Sign signs an access token with claims besides the usual ones, which they replace; nil leaves one
// out.
func (s *Server) Sign(claims map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sign(claims)
}

func (s *Server) sign(claims map[string]any) string {
	all := map[string]any{"iss": s.URL, "sub": s.Person, "exp": time.Now().Add(s.Life).Unix(), "iat": time.Now().Unix(), "jti": rand.Text()}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.key}, (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", s.keyID))
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// claims are those of an access token that the server has signed and that is still good.
func (s *Server) claims(token string) (map[string]any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, false
	}
	var all map[string]any
	var times jwt.Claims
	if parsed.Claims(s.key.Public(), &all, &times) != nil || times.ValidateWithLeeway(jwt.Expected{Issuer: s.URL, Time: time.Now()}, 0) != nil {
		return nil, false
	}
	return all, true
}

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // the client may have gone
}

func refuse(w http.ResponseWriter, status int, code string) {
	answer(w, status, map[string]string{"error": code, "error_description": "as the test wants it"})
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "jwks_uri": s.URL + "/keys",
		"registration_endpoint": s.URL + "/register", "revocation_endpoint": s.URL + "/revoke", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"},
		"scopes_supported":                      []string{"offline_access"},
	}
	if s.Metadata != nil {
		s.Metadata(document)
	}
	answer(w, http.StatusOK, document)
}

func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: s.keyID, Use: "sig"}}})
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Redirects) != 1 {
		refuse(w, http.StatusBadRequest, "invalid_redirect_uri")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, out := "registered-"+rand.Text(), map[string]any{"token_endpoint_auth_method": asked.Method, "redirect_uris": asked.Redirects}
	out["client_id"] = id
	c := Client{}
	if asked.Method != "none" {
		c.Secret = rand.Text()
		out["client_secret"] = c.Secret
	}
	s.Clients[id] = c
	answer(w, http.StatusCreated, out)
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	_, known := s.Clients[q.Get("client_id")]
	if !known || err != nil || back.Hostname() != "127.0.0.1" || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" || q.Get("state") == "" {
		http.Error(w, "this is no login", http.StatusBadRequest)
		return
	}
	id := rand.Text()
	s.codes[id] = code{grant{id, q.Get("client_id"), s.Person, q.Get("resource"), q.Get("scope")}, q.Get("code_challenge"), q.Get("redirect_uri")}
	out := url.Values{"code": {id}, "state": {q.Get("state")}, "iss": {s.URL}}
	if s.Authorized != nil {
		s.Authorized(out)
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound) //nolint:gosec // to this machine alone, as is checked above
}

// client finds out who asks for a token.
func (s *Server) client(r *http.Request) (id string, ok bool) {
	if name, secret, basic := r.BasicAuth(); basic {
		id, err := url.QueryUnescape(name)
		plain, serr := url.QueryUnescape(secret)
		c, known := s.Clients[id]
		return id, known && err == nil && serr == nil && c.Secret != "" && c.Secret == plain
	}
	id = r.PostForm.Get("client_id")
	c, known := s.Clients[id]
	if assertion := r.PostForm.Get("client_assertion"); assertion != "" {
		var claims jwt.Claims
		parsed, err := jwt.ParseSigned(assertion, []jose.SignatureAlgorithm{jose.ES256})
		return id, known && err == nil && c.Key != nil && parsed.Claims(c.Key, &claims) == nil &&
			claims.Validate(jwt.Expected{Issuer: id, Subject: id, AnyAudience: jwt.Audience{s.URL}, Time: time.Now()}) == nil && claims.ID != ""
	}
	return id, known && c.Key == nil && c.Secret == r.PostForm.Get("client_secret")
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what is missing is refused
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.client(r)
	if !ok {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	kind := r.PostForm.Get("grant_type")
	var g *grant
	switch kind {
	case "client_credentials":
		if s.Clients[id].Secret != "" || s.Clients[id].Key != nil {
			g = &grant{id: rand.Text(), client: id, person: id, resource: r.PostForm.Get("resource"), scope: r.PostForm.Get("scope")}
		}
	case "authorization_code":
		c := s.codes[r.PostForm.Get("code")]
		delete(s.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if c.client == id && c.challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && c.redirect == r.PostForm.Get("redirect_uri") {
			g = &c.grant
		}
	case "refresh_token":
		token := r.PostForm.Get("refresh_token")
		if twice := s.used[token]; twice != nil {
			s.ended[twice.id] = true
		}
		if g = s.refresh[token]; g != nil && (g.client != id || s.ended[g.id]) {
			g = nil
		}
		delete(s.refresh, token)
		if g != nil {
			s.used[token] = g
		}
	}
	if g == nil || g.resource != r.PostForm.Get("resource") {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	out := map[string]any{
		"access_token": s.sign(map[string]any{"aud": g.resource, "sub": g.person, "client_id": id, "scope": g.scope}),
		"token_type":   "Bearer", "expires_in": int(s.Life.Seconds()), "scope": g.scope,
	}
	if kind != "client_credentials" {
		next := "refresh-" + rand.Text()
		s.refresh[next] = g
		out["refresh_token"] = next
	}
	if s.Tokens != nil {
		s.Tokens(kind, out)
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what is missing is refused
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.client(r); !ok {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	if g := s.refresh[r.PostForm.Get("token")]; g != nil {
		s.ended[g.id] = true
	}
	w.WriteHeader(http.StatusOK)
}

// Logins counts the refresh tokens that are good.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for g := range maps.Values(s.refresh) {
		if !s.ended[g.id] {
			n++
		}
	}
	return n
}

// A Resource is protected by a server.
type Resource struct {
	URL string
	of  *Server

	mu     sync.Mutex
	scopes []string // that requests take
	tokens []string // that came, in order
}

// Protect serves a handler at /mcp to those who have tokens for it.
func (s *Server) Protect(h http.Handler, scopes ...string) *Resource {
	r := &Resource{of: s, scopes: scopes}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/.well-known/oauth-protected-resource") {
			answer(w, http.StatusOK, map[string]any{"resource": r.URL, "authorization_servers": []string{s.URL}, "scopes_supported": scopes})
			return
		}
		if r.lets(w, req) {
			h.ServeHTTP(w, req)
		}
	}))
	s.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	r.URL = server.URL + "/mcp"
	return r
}

// Require changes the scopes that requests take.
func (r *Resource) Require(scopes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scopes = scopes
}

// Tokens are those that came, each once, in order.
func (r *Resource) Tokens() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tokens)
}

func (r *Resource) lets(w http.ResponseWriter, req *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if token != "" && !slices.Contains(r.tokens, token) {
		r.tokens = append(r.tokens, token)
	}
	challenge := `Bearer resource_metadata="` + strings.TrimSuffix(r.URL, "/mcp") + `/.well-known/oauth-protected-resource/mcp", scope="` + strings.Join(r.scopes, " ") + `"`
	claims, ok := r.of.claims(token)
	if !ok || claims["aud"] != r.URL {
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "no "+token, http.StatusUnauthorized)
		return false
	}
	scope, _ := claims["scope"].(string)
	for _, needed := range r.scopes {
		if !slices.Contains(strings.Fields(scope), needed) {
			w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
			http.Error(w, "no "+token, http.StatusForbidden)
			return false
		}
	}
	return true
}

// Browse is a browser in which somebody logs in at once.
func Browse(at string) error {
	go func() {
		if resp, err := http.Get(at); err == nil { //nolint:gosec,noctx // the test's
			_ = resp.Body.Close()
		}
	}()
	return nil
}
