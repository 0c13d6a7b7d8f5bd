package envelope

import "github.com/agentd/agentd/internal/ijson"

// An AuthKind names the way in which a message proves its sender.
type AuthKind string

// The kinds of version 1.
const (
	// AuthInternal claims the sender without proof, between trusted peers.
	AuthInternal AuthKind = "internal"
	// AuthHMAC carries HMAC-SHA-256 over the signing form, in hex.
	AuthHMAC AuthKind = "hmac"
	// AuthOIDC carries an OpenID Connect token.
	AuthOIDC AuthKind = "oidc"
	// AuthOAuth2Client carries an OAuth 2 client-credentials token.
	AuthOAuth2Client AuthKind = "oauth2-client"
)

// Auth is a message's proof of its sender. Which fields are set follows Kind:
// hmac has KeyID and Signature, oidc has Token and may have KeyID,
// oauth2-client has Token and may have Scope, internal has none.
type Auth struct {
	// Kind is required.
	Kind AuthKind
	// KeyID names the key that Signature or Token was made with.
	KeyID string
	// Signature is 64 hex digits.
	Signature string
	// Token is a bearer token. It is a secret: never log it.
	Token string
	// Scope is a space-separated list.
	Scope string
}

// fault returns what is wrong with a, or "". An hmac without a key id is refused
// even though a receiver with a single key could check it: during a rotation a
// receiver has two.
func (a *Auth) fault() string {
	//exhaustive:enforce
	switch a.Kind {
	case AuthInternal:
		return ""
	case AuthHMAC:
		if a.KeyID == "" || a.Signature == "" {
			return "hmac needs keyId and signature"
		}
		return ""
	case AuthOIDC, AuthOAuth2Client:
		if a.Token == "" {
			return string(a.Kind) + " needs token"
		}
		return ""
	}
	return "kind must be internal, hmac, oidc or oauth2-client"
}

// append writes the fields that belong to the kind, and no others: a token left
// in a struct whose kind has changed must not reach the wire.
func (a *Auth) append(dst []byte) []byte {
	dst = ijson.AppendQuoted(append(dst, `{"kind":`...), string(a.Kind))
	//exhaustive:enforce
	switch a.Kind {
	case AuthInternal: // nothing but the kind
	case AuthHMAC:
		dst = appendMember(dst, "keyId", a.KeyID)
		dst = appendMember(dst, "signature", a.Signature)
	case AuthOIDC:
		dst = appendMember(dst, "token", a.Token)
		dst = appendOptional(dst, "keyId", a.KeyID)
	case AuthOAuth2Client:
		dst = appendMember(dst, "token", a.Token)
		dst = appendOptional(dst, "scope", a.Scope)
	}
	return append(dst, '}')
}
