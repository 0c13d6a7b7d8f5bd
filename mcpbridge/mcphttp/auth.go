package mcphttp

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A credential is a way in which a client shows who it is.
type credential int

const (
	byNothing credential = iota
	byToken
	byOAuth
)

// An identity is who makes a request.
type identity struct {
	client  string
	by      credential
	token   digest // of a static one
	claims  claims // of an access token
	expires time.Time
}

// same reports whether two identities are one, so that a session of the one is the other's. An
// access token is renewed every so often; who it is about stays.
func (i identity) same(o identity) bool {
	return i.client == o.client && i.by == o.by && i.token == o.token && i.claims == o.claims
}

// An authenticator holds what requests are identified by. It does not change.
type authenticator struct {
	anonymous string
	tokens    []staticToken
	oauth     *verifier // nil without an issuer
}

// newAuthenticator makes an authenticator of a configuration without faults. It takes over the
// keys of the one before if the issuer is still the same.
func newAuthenticator(ctx context.Context, cfg Auth, log *slog.Logger, before *authenticator) *authenticator {
	a := &authenticator{anonymous: cfg.Anonymous}
	for _, t := range cfg.Tokens {
		a.tokens = append(a.tokens, staticToken{t.Client, sha256.Sum256([]byte(t.Secret))})
	}
	if cfg.OAuth != nil {
		var old *verifier
		if before != nil {
			old = before.oauth
		}
		a.oauth = newVerifier(ctx, *cfg.OAuth, log, old)
	}
	return a
}

func (a *authenticator) takesTokens() bool { return len(a.tokens) > 0 || a.oauth != nil }

// A refusal is an answer to a request that is not served.
type refusal struct {
	status     int
	text       string
	code       string // of RFC 6750 section 3.1, where the token is at fault
	retryAfter time.Duration
}

// identify finds out who makes a request.
func (a *authenticator) identify(r *http.Request) (identity, *refusal) {
	header := r.Header.Get("Authorization")
	if header == "" {
		if a.anonymous != "" && fromThisMachine(r) {
			return identity{client: a.anonymous, by: byNothing}, nil
		}
		return identity{}, &refusal{status: http.StatusUnauthorized, text: "a bearer token is required"}
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "Bearer") || !isBearer(secret) {
		return identity{}, &refusal{status: http.StatusUnauthorized, text: "a bearer token is required"}
	}
	if found, ok := lookUp(a.tokens, secret); ok {
		return identity{client: found.client, by: byToken, token: found.digest}, nil
	}
	if a.oauth == nil {
		return identity{}, invalid("the token is not known")
	}
	return a.oauth.verify(r.Context(), secret)
}

// holds reports whether an identity that was found earlier would be found again.
func (a *authenticator) holds(i identity) bool {
	switch i.by {
	case byToken:
		for _, t := range a.tokens {
			if t.client == i.client && t.digest == i.token {
				return true
			}
		}
		return false
	case byOAuth:
		return a.oauth != nil && a.oauth.holds(i)
	default:
		return a.anonymous == i.client
	}
}

// write answers a request, with the challenge that RFC 6750 and RFC 9728 demand where a token is
// missing or does not do.
func (a *authenticator) write(w http.ResponseWriter, no *refusal) {
	if no.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(no.retryAfter.Seconds())))
	}
	if challenge := a.challenge(no); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, no.text, no.status)
}

// challenge is the header WWW-Authenticate of a refusal, or "".
func (a *authenticator) challenge(no *refusal) string {
	if no.status != http.StatusUnauthorized && no.code == "" {
		return ""
	}
	var params []string
	if no.code != "" {
		params = append(params, `error="`+no.code+`"`, `error_description="`+no.text+`"`)
	}
	if a.oauth != nil {
		params = append(params, `resource_metadata="`+a.oauth.metadataURL+`"`)
		if scope := strings.Join(a.oauth.cfg.Scopes, " "); scope != "" {
			params = append(params, `scope="`+scope+`"`)
		}
	}
	return strings.TrimSpace("Bearer " + strings.Join(params, ", "))
}
