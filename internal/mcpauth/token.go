package mcpauth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// early is how long before its end a token is renewed at most: it has to arrive before that.
	early = 30 * time.Second
	// longest bounds what a server says about the life of a token.
	longest = 365 * 24 * time.Hour
)

// tokens are what an authorization server has given.
type tokens struct {
	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // of Access; zero if that is not known
	Due     time.Time `json:"due,omitzero"`     // when it is to be renewed
	// Scopes are those that were given.
	Scopes []string `json:"scopes,omitempty"`
}

// good reports whether the access token has not ended, and fresh whether it needs no renewal.
func (t *tokens) good() bool {
	return t.Access != "" && (t.Expires.IsZero() || time.Now().Before(t.Expires))
}

func (t *tokens) fresh() bool { return t.good() && (t.Due.IsZero() || time.Now().Before(t.Due)) }

// isBearer reports whether a text has the syntax of bearer tokens (RFC 6750 section 2.1). A
// token that is not of it could be more than one header.
func isBearer(token string) bool {
	token = strings.TrimRight(token, "=")
	return token != "" && strings.Trim(token, alphanumeric+"._~+/-") == ""
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// refused is the answer of an authorization server that gives no token.
type refused struct {
	err  *Error
	code string
}

func (r *refused) Error() string { return r.err.Error() }

func (r *refused) Unwrap() error { return r.err }

// isErrorCode reports whether the error of a server looks like one.
func isErrorCode(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_.-") == ""
}

// refusal is the error of an answer that is not what was asked for. Of its text only the code is
// shown: a server may write anything into the rest, what it was sent as well.
func (c *Config) refusal(what string, a *answer) error {
	var got struct {
		Error string `json:"error"`
	}
	if a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests {
		return errorf(Unreachable, "the %s of the MCP server %s answers %d", what, c.Name, a.status)
	}
	if json.Unmarshal(a.body, &got) != nil || !isErrorCode(got.Error) {
		return wrong("the %s of the MCP server %s answers %d", what, c.Name, a.status)
	}
	return &refused{wrong("the %s of the MCP server %s refuses: %s", what, c.Name, got.Error), got.Error}
}

// token asks for tokens. asked are the scopes that are given if the answer does not say which.
func (c *Config) token(ctx context.Context, endpoint, issuer string, who client, form url.Values, asked []string) (*tokens, error) {
	const what = "token endpoint"
	header := map[string]string{}
	if err := c.prove(who, issuer, form, header); err != nil {
		return nil, err
	}
	a, err := c.post(ctx, what, endpoint, form, nil, header)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, c.refusal(what, a)
	}
	var got struct {
		Access  string      `json:"access_token"`
		Type    string      `json:"token_type"`
		Refresh string      `json:"refresh_token"`
		Expires json.Number `json:"expires_in"`
		Scope   *string     `json:"scope"`
	}
	switch {
	case json.Unmarshal(a.body, &got) != nil:
		return nil, wrong("the token endpoint of the MCP server %s answers with no tokens", c.Name)
	case !strings.EqualFold(got.Type, "Bearer"):
		return nil, wrong("the token endpoint of the MCP server %s gives tokens of another type than Bearer", c.Name)
	case !isBearer(got.Access):
		return nil, wrong("the token endpoint of the MCP server %s gives no token that a header can have", c.Name)
	}
	t := &tokens{Access: got.Access, Refresh: got.Refresh, Scopes: asked}
	if seconds, err := got.Expires.Float64(); err == nil && seconds > 0 {
		now, life := time.Now(), time.Duration(min(seconds, longest.Seconds())*float64(time.Second))
		t.Expires, t.Due = now.Add(life), now.Add(max(life-early, life/2))
	}
	if got.Scope != nil && *got.Scope != "" {
		t.Scopes = strings.Fields(*got.Scope)
	}
	return t, nil
}

// revoke tells an authorization server that a token is not used any more (RFC 7009).
func (c *Config) revoke(ctx context.Context, endpoint, issuer string, who client, token string) error {
	form, header := url.Values{"token": {token}}, map[string]string{}
	if err := c.prove(who, issuer, form, header); err != nil {
		return err
	}
	a, err := c.post(ctx, "revocation endpoint", endpoint, form, nil, header)
	if err == nil && a.status != http.StatusOK {
		err = c.refusal("revocation endpoint", a)
	}
	return err
}
