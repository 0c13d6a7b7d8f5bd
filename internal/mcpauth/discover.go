package mcpauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Challenge is what a server says that lets a request not in.
type Challenge struct {
	// Metadata is where its metadata is, or "".
	Metadata string
	// Scopes are those that the request takes.
	Scopes []string
	// Error is its error (RFC 6750), or "".
	Error string
}

// maxScopeBytes bounds the scopes of a challenge, which logins keep. Longer ones say nothing.
const maxScopeBytes = 4 << 10

// ParseChallenge reads the challenges in the header of an answer.
func ParseChallenge(h http.Header) (c Challenge) {
	all, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return c // one that cannot be read says nothing
	}
	for _, found := range all {
		if found.Scheme != "bearer" {
			continue
		}
		if c.Metadata == "" {
			c.Metadata = found.Params["resource_metadata"]
		}
		if scopes := found.Params["scope"]; c.Scopes == nil && len(scopes) <= maxScopeBytes {
			c.Scopes = strings.Fields(scopes)
		}
		if c.Error == "" {
			c.Error = found.Params["error"]
		}
	}
	return c
}

// A Probe sends no token, and keeps what the server says to that.
type Probe struct {
	mu    sync.Mutex
	found *Challenge
}

// Found returns the challenge of the server; nil if it has let in whoever came.
func (p *Probe) Found() *Challenge {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

// Token returns none.
func (*Probe) Token(context.Context) (string, error) { return "", nil }

// Refused keeps the challenge.
func (p *Probe) Refused(_ context.Context, r Refusal) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := ParseChallenge(r.Header)
	p.found = &ch
	return false, errorf(NeedsLogin, "the MCP server asks for a login")
}

// Renewed reports false.
func (*Probe) Renewed() bool { return false }

// Secrets are none.
func (*Probe) Secrets() []string { return nil }

// A discovery is what metadata says about the access to a server.
type discovery struct {
	resource string   // what tokens are for (RFC 8707)
	scopes   []string // those that the server names
	meta     *oauthex.AuthServerMeta
}

// discover reads the metadata of the server, and of its authorization server.
func (c *Config) discover(ctx context.Context, ch Challenge) (*discovery, error) {
	prm, err := c.resourceMetadata(ctx, ch)
	if err != nil {
		return nil, err
	}
	d := &discovery{resource: c.URL, scopes: ch.Scopes}
	issuer := c.Issuer
	if prm != nil {
		d.resource = prm.Resource
		if len(d.scopes) == 0 {
			d.scopes = prm.ScopesSupported
		}
		switch {
		case issuer == "" && len(prm.AuthorizationServers) > 0:
			issuer = prm.AuthorizationServers[0]
		case issuer != "" && !slices.ContainsFunc(prm.AuthorizationServers, func(s string) bool { return sameIssuer(s, issuer) }):
			return nil, wrong("the MCP server %s takes no tokens of %s, which its issuer is said to be: its metadata names others", c.Name, issuer)
		}
	}
	if issuer == "" {
		return nil, wrong("the MCP server %s does not say where its tokens are had (RFC 9728): name its authorization server as oauth.issuer", c.Name)
	}
	d.meta, err = c.serverMetadata(ctx, issuer)
	return d, err
}

// resourceMetadata is that of the server, nil if there is none.
func (c *Config) resourceMetadata(ctx context.Context, ch Challenge) (*oauthex.ProtectedResourceMetadata, error) {
	const what = "resource metadata"
	server, err := checkURL(c.URL)
	if err != nil {
		return nil, wrong("the MCP server %s: %v", c.Name, err)
	}
	var places []string
	if ch.Metadata != "" {
		// What another host says is not the server's word.
		u, err := url.Parse(ch.Metadata)
		if err != nil || origin(u) != origin(server) {
			return nil, wrong("the MCP server %s has its resource metadata at another host, which is not asked", c.Name)
		}
		places = append(places, ch.Metadata)
	}
	const known = "/.well-known/oauth-protected-resource"
	if path := strings.TrimSuffix(server.Path, "/"); path != "" {
		places = append(places, (&url.URL{Scheme: server.Scheme, Host: server.Host, Path: known + path}).String())
	}
	places = append(places, (&url.URL{Scheme: server.Scheme, Host: server.Host, Path: known}).String())
	for _, at := range slices.Compact(places) {
		var found oauthex.ProtectedResourceMetadata
		if ok, err := c.document(ctx, what, at, &found); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if !within(found.Resource, server) {
			return nil, wrong("the resource metadata of the MCP server %s is for another resource", c.Name)
		}
		return &found, nil
	}
	return nil, nil // it has none
}

// serverMetadata is that of an authorization server (RFC 8414, OpenID Connect Discovery).
func (c *Config) serverMetadata(ctx context.Context, issuer string) (*oauthex.AuthServerMeta, error) {
	const what = "authorization server's metadata"
	u, err := checkURL(issuer)
	if err != nil || u.RawQuery != "" {
		return nil, wrong("the authorization server of the MCP server %s cannot be used: its issuer is no URL by https", c.Name)
	}
	path := strings.TrimSuffix(u.Path, "/")
	places := []string{"/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, path+"/.well-known/openid-configuration")
	}
	for _, at := range places {
		var meta oauthex.AuthServerMeta
		if ok, err := c.document(ctx, what, (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: at}).String(), &meta); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if !sameIssuer(meta.Issuer, issuer) {
			return nil, wrong("the authorization server's metadata of the MCP server %s is that of another issuer", c.Name)
		}
		for name, endpoint := range map[string]string{"token": meta.TokenEndpoint, "authorization": meta.AuthorizationEndpoint, "registration": meta.RegistrationEndpoint, "revocation": meta.RevocationEndpoint} {
			_, err := checkURL(endpoint)
			if strings.ContainsFunc(endpoint, func(r rune) bool { return r <= ' ' || r > '~' }) {
				err = errors.New("its URL has characters that URLs do not have") // nor a terminal should get
			}
			if err != nil && (endpoint != "" || name == "token") {
				return nil, wrong("the %s endpoint of the MCP server %s cannot be used: %v", name, c.Name, err)
			}
		}
		return &meta, nil
	}
	return nil, wrong("the authorization server of the MCP server %s has no metadata (RFC 8414)", c.Name)
}

// union adds scopes that are not there yet.
func union(all ...[]string) (out []string) {
	for _, scope := range slices.Concat(all...) {
		if !slices.Contains(out, scope) {
			out = append(out, scope)
		}
	}
	return out
}

// lacks reports whether scopes has not all of those that are needed.
func lacks(scopes, needed []string) bool {
	return slices.ContainsFunc(needed, func(s string) bool { return !slices.Contains(scopes, s) })
}
