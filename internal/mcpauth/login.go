package mcpauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// callbackPath is where the browser comes back to.
const callbackPath = "/callback"

// An Interaction is how a login reaches somebody.
type Interaction struct {
	// Port is that of the loopback address to which the browser comes back; 0 is any free one.
	Port int
	// Open shows a URL to somebody. It must return at once.
	Open func(url string) error
}

// Login has somebody agree, in a browser, to what the server asks for, and keeps that. It waits
// until ctx ends.
func (c *Config) Login(ctx context.Context, s Store, ch Challenge, with Interaction) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(with.Port)))
	if err != nil {
		return fmt.Errorf("the login has nowhere to come back to: %w", err)
	}
	back := newCallback(listener)
	defer back.close()
	d, err := c.discover(ctx, ch)
	if err != nil {
		return err
	}
	if d.meta.AuthorizationEndpoint == "" || !slices.Contains(d.meta.CodeChallengeMethodsSupported, "S256") {
		return wrong("the authorization server of the MCP server %s has no login that is protected by PKCE (S256)", c.Name)
	}
	who, err := c.client(ctx, d.meta, back.url)
	if err != nil {
		return err
	}
	before, _, err := s.load(c.URL)
	if err != nil {
		before = nil // it is replaced
	}
	scopes := c.loginScopes(d, before)
	verifier := oauth2.GenerateVerifier()
	config := oauth2.Config{ClientID: who.ID, RedirectURL: back.url, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: d.meta.AuthorizationEndpoint}}
	at := config.AuthCodeURL(back.state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", d.resource))
	if err := with.Open(at); err != nil {
		return err
	}
	code, err := back.wait(ctx, d.meta.Issuer, d.meta.AuthorizationResponseIssParameterSupported)
	if err != nil {
		return fmt.Errorf("the login at the MCP server %s: %w", c.Name, err)
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back.url}, "code_verifier": {verifier}, "resource": {d.resource}}
	t, err := c.token(ctx, d.meta.TokenEndpoint, d.meta.Issuer, who, form, scopes)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.save(&login{
		Server: c.URL, Resource: d.resource, Issuer: d.meta.Issuer, TokenEndpoint: d.meta.TokenEndpoint, RevokeEndpoint: d.meta.RevocationEndpoint,
		Client: who, Since: time.Now().UTC().Truncate(time.Second), tokens: *t,
	})
}

// loginScopes are those that somebody is asked for: what the operator or the server names, with
// what the same authorization server has given before, and what a call has lacked since.
func (c *Config) loginScopes(d *discovery, before *login) []string {
	if c.Scopes != nil {
		return c.Scopes
	}
	scopes := slices.Clone(d.scopes)
	if before != nil && before.Issuer == d.meta.Issuer {
		scopes = union(before.Scopes, scopes, before.Wanted)
	}
	const offline = "offline_access"
	if slices.Contains(d.meta.ScopesSupported, offline) {
		scopes = union(scopes, []string{offline}) // without it there would be nothing to renew
	}
	return scopes
}

// Logout forgets the login at a server, and tells the authorization server. It reports whether
// there was one; the error is about the latter alone if so.
func (c *Config) Logout(ctx context.Context, s Store) (found bool, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	l, at, err := s.load(c.URL)
	if at.info == nil {
		return false, nil
	}
	if rerr := s.remove(c.URL); rerr != nil {
		return false, rerr
	}
	if err != nil || l.RevokeEndpoint == "" || l.Refresh+l.Access == "" {
		return true, nil // what cannot be read cannot be revoked
	}
	token := l.Refresh
	if token == "" {
		token = l.Access
	}
	return true, c.revoke(ctx, l.RevokeEndpoint, l.Issuer, l.Client, token)
}

// A LoginState is how it stands with a login.
type LoginState struct {
	Issuer string    `json:"issuer"`
	Since  time.Time `json:"since"`
	// Expires is when the token ends; Renewable says that another one follows.
	Expires   time.Time `json:"expires,omitzero"`
	Renewable bool      `json:"renewable"`
	Scopes    []string  `json:"scopes,omitempty"`
	// Failed is why it is of no use any more.
	Failed string `json:"failed,omitempty"`
}

// LoginState returns how it stands with the login at a server; nil if there is none.
func (c *Config) LoginState(s Store) (*LoginState, error) {
	l, _, err := s.load(c.URL)
	if l == nil {
		return nil, err
	}
	return &LoginState{l.Issuer, l.Since, l.Expires, l.Refresh != "", l.Scopes, l.Failed}, nil
}

// A callback is where the browser comes back to.
type callback struct {
	url, state string
	server     *http.Server
	done       chan struct{}
	came       chan url.Values // has room for the first answer
}

func newCallback(l net.Listener) *callback {
	b := &callback{url: "http://" + l.Addr().String() + callbackPath, state: rand.Text(), done: make(chan struct{}), came: make(chan url.Values, 1)}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { defer close(b.done); _ = b.server.Serve(l) }() // it ends with close
	return b
}

func (b *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if b.server.Shutdown(ctx) != nil { // the page is on its way
		_ = b.server.Close()
	}
	<-b.done
}

// ServeHTTP takes the answer of the authorization server. Whoever does not know the state, such
// as another page in the browser, neither gives nor takes one.
func (b *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.URL.Path != callbackPath || r.Method != http.MethodGet || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(b.state)) != 1 {
		http.Error(w, "This is not the answer to the login that agentd waits for.", http.StatusBadRequest)
		return
	}
	select {
	case b.came <- query:
	default: // it came twice
	}
	_, _ = fmt.Fprintln(w, "agentd has the answer. Its command says whether the login is good; this window can be closed.") // nobody waits for it
}

// wait returns the code of the answer, once it is that of the issuer (RFC 9207).
func (b *callback) wait(ctx context.Context, issuer string, names bool) (string, error) {
	var query url.Values
	select {
	case query = <-b.came:
	case <-ctx.Done():
		return "", fmt.Errorf("nobody has logged in: %w", ctx.Err())
	}
	// Before anything else is believed, an error as well.
	switch iss := query["iss"]; {
	case len(iss) > 1, len(iss) == 1 && iss[0] != issuer:
		return "", errors.New("the answer is that of another issuer")
	case len(iss) == 0 && names:
		return "", errors.New("the answer does not name its issuer, which this authorization server does")
	}
	if code := query.Get("error"); code != "" {
		if !isErrorCode(code) {
			code = "an error"
		}
		return "", fmt.Errorf("the authorization server refuses: %s", code)
	}
	if code := query["code"]; len(code) == 1 && code[0] != "" && !strings.ContainsAny(code[0], "\r\n") {
		return code[0], nil
	}
	return "", errors.New("the answer has no code")
}
