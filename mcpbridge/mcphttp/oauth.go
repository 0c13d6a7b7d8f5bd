package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	wellKnown = "/.well-known/oauth-protected-resource"
	// leeway is how far the clocks of the issuer and of this machine may be apart.
	leeway = 30 * time.Second
)

// asymmetric are the algorithms that a configuration may name. With the others, or with none,
// whoever knows the issuer's public keys could make tokens.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"} //nolint:gochecknoglobals // a constant, but for its type

// claims are those of an access token that say who it is about.
type claims struct{ issuer, subject, clientID string }

// A verifier verifies the access tokens of an issuer.
type verifier struct {
	cfg         OAuth
	algorithms  []jose.SignatureAlgorithm
	audiences   []string
	keys        *keys
	metadata    http.Handler
	metadataURL string
	path        string // of the metadata
}

func newVerifier(ctx context.Context, cfg OAuth, log *slog.Logger, before *verifier) *verifier {
	names := cfg.Algorithms
	if len(names) == 0 {
		names = []string{"RS256", "PS256", "ES256", "EdDSA"}
	}
	v := &verifier{cfg: cfg, audiences: append([]string{cfg.Resource}, cfg.Audiences...)}
	for _, name := range names {
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(name))
	}
	v.metadata = auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: cfg.Resource, AuthorizationServers: []string{cfg.Issuer},
		ScopesSupported: cfg.Scopes, BearerMethodsSupported: []string{"header"}, ResourceName: "agentd",
	})
	// RFC 9728 section 3.1: the well-known part stands between the host and the path.
	if u, err := url.Parse(cfg.Resource); err == nil {
		v.path = wellKnown + strings.TrimSuffix(u.Path, "/")
		v.metadataURL = u.Scheme + "://" + u.Host + v.path
	}
	if before != nil && before.keys.issuer == cfg.Issuer && before.keys.url == cfg.KeysURL && before.keys.client == cfg.HTTP {
		v.keys = before.keys
	} else {
		v.keys = newKeys(ctx, cfg, log)
	}
	return v
}

// invalid refuses a token. The text is for whoever runs the client; it says nothing that the
// token does not.
func invalid(text string) *refusal {
	return &refusal{status: http.StatusUnauthorized, code: "invalid_token", text: text}
}

// verify identifies the client of an access token.
func (v *verifier) verify(ctx context.Context, secret string) (identity, *refusal) {
	token, err := jwt.ParseSigned(secret, v.algorithms)
	if err != nil || len(token.Headers) != 1 {
		return identity{}, invalid("the token is not known, and no JWT with an algorithm that is accepted")
	}
	head := token.Headers[0]
	if kind, ok := head.ExtraHeaders[jose.HeaderType].(string); ok && !accessTokenType(kind) {
		return identity{}, invalid("the token is of another type than an access token")
	}
	candidates, err := v.keys.find(ctx, head.KeyID)
	if err != nil {
		return identity{}, &refusal{status: http.StatusServiceUnavailable, text: "the token cannot be checked now: the issuer's keys cannot be had", retryAfter: 5 * time.Second}
	}
	for _, key := range candidates {
		if key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != head.Algorithm {
			continue
		}
		var all tokenClaims
		if token.Claims(key.Key, &all) == nil {
			return v.judge(&all)
		}
	}
	return identity{}, invalid("the token is not signed with a key of the issuer")
}

// accessTokenType accepts what RFC 9068 demands, and what issuers that are older than it write.
func accessTokenType(kind string) bool {
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	return kind == "at+jwt" || kind == "jwt"
}

type tokenClaims struct {
	jwt.Claims
	ClientID   string `json:"client_id"`
	Authorized string `json:"azp"`
	Scope      scopes `json:"scope"`
	ScopeList  scopes `json:"scp"`
}

// scopes are written as a list or as words, depending on the issuer.
type scopes []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scopes) UnmarshalJSON(data []byte) error {
	var words string
	if err := json.Unmarshal(data, &words); err == nil {
		*s = strings.Fields(words)
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// judge decides about a token that the issuer has signed.
func (v *verifier) judge(c *tokenClaims) (identity, *refusal) {
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: v.cfg.Issuer, Time: time.Now()}, leeway)
	switch {
	case errors.Is(err, jwt.ErrExpired) || err == nil && c.Expiry == nil:
		return identity{}, invalid("the token has expired, or does not say when it does")
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return identity{}, invalid("the token is of another issuer")
	case err != nil:
		return identity{}, invalid("the token is not valid yet")
	case !slices.ContainsFunc(v.audiences, func(a string) bool { return oauthex.MatchesResource(c.Audience, a) }):
		return identity{}, invalid("the token is for another audience")
	}
	for _, needed := range v.cfg.Scopes {
		if !slices.Contains(c.Scope, needed) && !slices.Contains(c.ScopeList, needed) {
			return identity{}, &refusal{status: http.StatusForbidden, code: "insufficient_scope", text: "the token lacks a scope"}
		}
	}
	who := claims{v.cfg.Issuer, c.Subject, c.ClientID}
	if who.clientID == "" {
		who.clientID = c.Authorized
	}
	client, ok := v.client(who)
	if !ok {
		return identity{}, &refusal{status: http.StatusForbidden, text: "the token is valid, but nobody's who may use this endpoint"}
	}
	return identity{client: client, by: byOAuth, claims: who, expires: c.Expiry.Time()}, nil
}

// client finds the client of a token.
func (v *verifier) client(who claims) (string, bool) {
	for _, m := range v.cfg.Clients {
		if (m.Subject == "" || m.Subject == who.subject) && (m.ClientID == "" || m.ClientID == who.clientID) {
			return m.Client, true
		}
	}
	return "", false
}

func (v *verifier) holds(i identity) bool {
	client, ok := v.client(i.claims)
	return ok && client == i.client && i.claims.issuer == v.cfg.Issuer
}
