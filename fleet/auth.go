package fleet

import (
	"fmt"
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// A Provider is a mechanism to authenticate envelopes.
type Provider string

// The providers that a file may name.
const (
	OIDC         Provider = "oidc"
	OAuth2Client Provider = "oauth2-client"
	HMAC         Provider = "hmac"
	NKey         Provider = "nkey"
)

// PeerAuth describes how one agent proves its identity to another. Provider
// decides which fields are set. References to secrets are not resolved here.
type PeerAuth struct {
	// Provider is the mechanism.
	Provider Provider
	// Issuer, Audience and JWKSURI are for OIDC, and optional for OAuth2Client.
	Issuer, Audience, JWKSURI string
	// TokenEndpoint, ClientID and ClientSecretRef are for OAuth2Client.
	TokenEndpoint, ClientID, ClientSecretRef string
	// Secrets are for HMAC, at least one. Of those that are valid at the
	// time, the last one signs.
	Secrets []SharedSecret
	// PublicKeys are for NKey. If there are none, identities.yaml has them.
	PublicKeys []PublicKey
	// Scopes must all be present in a token. Only OIDC and OAuth2Client have
	// tokens.
	Scopes []string
	// Position is where the block stands.
	Position Position
}

// A SharedSecret is a key that two agents share.
type SharedSecret struct {
	// KeyID names the key in messages, so that both ends can rotate it.
	KeyID string
	// Ref is env:NAME or file:/path.
	Ref string
	// NotBefore and NotAfter bound the time in which it is valid; the zero
	// time is no bound.
	NotBefore, NotAfter time.Time
}

// A PublicKey is the public half of an agent's key pair.
type PublicKey struct {
	// Key is the public nkey of a user, U….
	Key string
	// NotBefore and NotAfter are when it counts; the zero time is no bound.
	NotBefore, NotAfter time.Time
}

// decodeAuth reads an auth block; nil if there is none. It accepts only the
// provider's own keys: a key that has no effect would leave its author with a
// false sense of security.
func decodeAuth(v strictyaml.Value) *PeerAuth {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	a := &PeerAuth{
		Provider: Provider(o.Need("provider").Enum(string(OIDC), string(OAuth2Client), string(HMAC), string(NKey))),
		Position: v.Position(),
	}
	switch a.Provider {
	case OIDC:
		a.Issuer = o.Need("issuer").Text()
		a.Audience = o.Need("audience").Text()
		a.JWKSURI = o.Get("jwksUri").Text()
	case OAuth2Client:
		a.TokenEndpoint = o.Need("tokenEndpoint").Text()
		a.ClientID = o.Need("clientId").Text()
		a.ClientSecretRef = o.Need("clientSecretRef").Text()
		a.JWKSURI = o.Get("jwksUri").Text()
		a.Issuer = o.Get("issuer").Text()
		a.Audience = o.Get("audience").Text()
	case HMAC:
		a.Secrets = decodeSecrets(o)
	case NKey:
		a.PublicKeys = decodePublicKeys(o)
	default:
		return a // the fault is recorded; which keys belong here is unknown
	}
	scopes := o.Get("scopes")
	a.Scopes = scopes.Texts()
	if scopes.Present() && (a.Provider == HMAC || a.Provider == NKey) {
		scopes.Fault(fmt.Sprintf("the provider %s has no tokens, so its scopes would protect nothing", a.Provider), "callers in capabilities.yaml and permissions in agent.yaml decide who may call")
	}
	o.Done()
	return a
}

// decodeSecrets reads keyId and secretRef, the reference system's form for
// one key, or the list keys, which makes rotation possible.
func decodeSecrets(o *strictyaml.Object) []SharedSecret {
	keys := o.Get("keys")
	if !keys.Present() {
		return []SharedSecret{{KeyID: o.Need("keyId").Text(), Ref: o.Need("secretRef").Text()}}
	}
	for _, name := range []string{"keyId", "secretRef"} {
		if single := o.Get(name); single.Present() {
			single.Fault("beside keys it would be one key too many", "move it into keys")
		}
	}
	var secrets []SharedSecret
	seen := map[string]bool{}
	for _, item := range keys.AtLeastOne("key").List() {
		k := item.Object()
		id := k.Need("keyId")
		s := SharedSecret{KeyID: id.Text(), Ref: k.Need("secretRef").Text()}
		s.NotBefore, s.NotAfter = decodeWindow(k)
		k.Done()
		if seen[s.KeyID] && s.KeyID != "" {
			id.Fault("two keys have this keyId", "messages name a key by it")
		}
		seen[s.KeyID] = true
		secrets = append(secrets, s)
	}
	return secrets
}

// decodePublicKeys reads publicKey or the list publicKeys; nil if there is
// neither.
func decodePublicKeys(o *strictyaml.Object) []PublicKey {
	single, keys := o.Get("publicKey"), o.Get("publicKeys")
	if single.Present() {
		if keys.Present() {
			single.Fault("beside publicKeys it would be one key too many", "move it into publicKeys")
		}
		return []PublicKey{{Key: decodeNKey(single)}}
	}
	if !keys.Present() {
		return nil
	}
	var public []PublicKey
	for _, item := range keys.AtLeastOne("key").List() {
		k := item.Object()
		p := PublicKey{Key: decodeNKey(k.Need("key"))}
		p.NotBefore, p.NotAfter = decodeWindow(k)
		k.Done()
		public = append(public, p)
	}
	return public
}

// nkeyLength is the length of a public nkey: base32 of 35 bytes, which are a
// prefix, a key of 32 bytes and a check sum of two.
const nkeyLength = 56

// decodeNKey reads a public key by its form. It does not repeat the text in a
// fault, which might be a seed.
func decodeNKey(v strictyaml.Value) string {
	text := v.Text()
	switch {
	case text == "":
	case text[0] == 'S':
		v.Fault("a seed stands here, which is secret", "revoke it, and write the public key, U…")
		return ""
	case text[0] != 'U' || len(text) != nkeyLength:
		v.Fault("expected a public nkey of a user", "56 characters that begin with U; `agentd identity list` shows an agent's own")
	}
	return text
}

// decodeWindow reads notBefore and notAfter, the time in which a key is
// valid.
func decodeWindow(o *strictyaml.Object) (notBefore, notAfter time.Time) {
	end := o.Get("notAfter")
	notBefore, notAfter = decodeTime(o.Get("notBefore")), decodeTime(end)
	if !notAfter.IsZero() && notAfter.Before(notBefore) {
		end.Fault("the key would never count: notAfter is before notBefore", "")
	}
	return notBefore, notAfter
}

// decodeTime reads a time in RFC 3339, or the zero time for an absent value.
func decodeTime(v strictyaml.Value) time.Time {
	if !v.Present() {
		return time.Time{}
	}
	text := v.Text()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil && text != "" {
		v.Fault("expected a date and time as in RFC 3339", "such as \"2026-12-01T00:00:00Z\"")
	}
	return at
}
