package fleet

import (
	"net/url"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/internal/strictyaml"
)

// An MCPAuth is how an agent gets the tokens with which an MCP server lets it in (OAuth 2.1).
type MCPAuth struct {
	// Grant is "login", somebody's in a browser, "client-credentials", or "jwt-bearer", by a token
	// of the platform that the agent runs on.
	Grant string `json:"grant"`
	// Issuer is the only authorization server that is used; "" is the one that the server names.
	Issuer string `json:"issuer"`
	// ClientID is that of a client which was registered there, ClientSecret or PrivateKey how it
	// proves itself, and Assertion the token of the platform: references to secrets.
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	PrivateKey   string `json:"privateKey"`
	Assertion    string `json:"assertion"`
	// KeyID and Algorithm are those of the key, Method how the secret is sent; "" is the usual one.
	KeyID     string `json:"keyId"`
	Algorithm string `json:"algorithm"`
	Method    string `json:"method"`
	// ClientMetadata is the URL of a client id metadata document.
	ClientMetadata string `json:"clientMetadata"`
	// Scopes are asked for in place of those that the server names.
	Scopes []string `json:"scopes"`
	// RedirectPort is the port of this machine that a browser comes back to; 0 is any.
	RedirectPort int `json:"redirectPort"`
}

// The grants of an [MCPAuth].
const (
	GrantLogin             = "login"
	GrantClientCredentials = "client-credentials"
	GrantJWTBearer         = "jwt-bearer"
)

// Refs are the references to secrets.
func (a *MCPAuth) Refs() []string { return []string{a.ClientSecret, a.PrivateKey, a.Assertion} }

// Fault says which key is wrong, "" for none, with what is wrong and what to do.
func (a *MCPAuth) Fault() (key, message, hint string) {
	for i, ref := range a.Refs() {
		if ref != "" && !secretref.Is(ref) {
			return []string{"clientSecret", "privateKey", "assertion"}[i], secretref.ErrLiteral.Error(), "such as env:ISSUES_SECRET" // without the text, which may be one
		}
	}
	if key, message, hint = a.proofFault(); key == "" {
		key, message, hint = a.grantFault()
	}
	if key != "" || a.ClientMetadata == "" {
		return key, message, hint
	}
	if u, err := url.Parse(a.ClientMetadata); err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" || u.Fragment != "" {
		return "clientMetadata", "it is no https URL of a document", "such as https://agents.example.com/agentd.json"
	}
	return "", "", ""
}

// proves reports whether a client proves itself.
func (a *MCPAuth) proves() bool { return a.ClientSecret != "" || a.PrivateKey != "" }

// proofFault is the fault of how a client proves itself.
func (a *MCPAuth) proofFault() (key, message, hint string) {
	switch {
	case a.ClientSecret != "" && a.PrivateKey != "":
		return "privateKey", "a client proves itself by a secret or by a key", "remove one of them"
	case a.proves() && a.ClientID == "":
		return "clientId", "the client that the secret is of is missing", "add the id that the authorization server gave it"
	case (a.proves() || a.Assertion != "") && a.Issuer == "":
		return "issuer", "whoever runs the server could have the secret sent to an authorization server of their own", "name the one that it is for"
	}
	return "", "", ""
}

// grantFault is the fault of what a grant takes.
func (a *MCPAuth) grantFault() (key, message, hint string) {
	switch {
	case a.Grant == GrantClientCredentials && !a.proves():
		return "grant", "nothing proves the client", "add clientId, and clientSecret or privateKey"
	case a.Grant == GrantJWTBearer && a.Assertion == "":
		return "grant", "there is no token to ask with", "add assertion: file:/var/run/secrets/…"
	case a.Grant == GrantJWTBearer && a.proves():
		return "grant", "the token is what proves the agent", "remove clientSecret and privateKey"
	case a.Grant != GrantJWTBearer && a.Assertion != "":
		return "assertion", "only the grant jwt-bearer asks with a token", "add grant: jwt-bearer"
	case a.Grant != GrantLogin && (a.ClientMetadata != "" || a.RedirectPort != 0):
		return "grant", "clientMetadata and redirectPort are for logins", "remove them"
	}
	return "", "", ""
}

// decodeMCPAuth reads the key oauth of a server; nil if there is none.
func decodeMCPAuth(v strictyaml.Value, credentials []MCPCredential) *MCPAuth {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	a := &MCPAuth{
		Grant: o.Get("grant").Enum(GrantLogin, GrantClientCredentials, GrantJWTBearer), Issuer: decodeServerURL(o.Get("issuer")), ClientID: o.Get("clientId").Text(),
		ClientSecret: o.Get("clientSecret").Text(), PrivateKey: o.Get("privateKey").Text(), Assertion: o.Get("assertion").Text(),
		KeyID: o.Get("keyId").Text(), Algorithm: o.Get("algorithm").Enum("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"), Method: o.Get("method").Enum("client_secret_basic", "client_secret_post"),
		ClientMetadata: o.Get("clientMetadata").Text(), Scopes: o.Get("scopes").Texts(), RedirectPort: int(o.Get("redirectPort").Int(1, 65535)),
	}
	if a.Grant == "" {
		a.Grant = GrantLogin
	}
	if slices.ContainsFunc(credentials, func(c MCPCredential) bool { return c.Header == "" || strings.EqualFold(c.Header, "Authorization") }) {
		v.Fault("credentials have the header that the token would be in", "remove the one or the other")
	} else if key, message, hint := a.Fault(); key != "" {
		at := o.Get(key)
		if !at.Present() {
			at = v
		}
		at.Fault(message, hint)
	}
	return a
}
