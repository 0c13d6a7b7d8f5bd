package fleet_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/fleet"
)

// authOf loads a peer with this auth block.
func authOf(t *testing.T, block string) (*fleet.PeerAuth, error) {
	t.Helper()
	f, err := fleet.Load(identityFleet(t, peerWith("    auth: "+block+"\n"), ""), fleet.LoadOptions{})
	if err != nil {
		return nil, err
	}
	auth := f.Members[0].Peers[0].Auth
	if auth == nil || auth.Position.Line != 5 {
		t.Fatalf("%s stands at %+v", block, auth)
	}
	auth.Position = fleet.Position{}
	return auth, nil
}

func TestAuthBlocks(t *testing.T) {
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for block, want := range map[string]fleet.PeerAuth{
		"{provider: oidc, issuer: i, audience: a}": {
			Provider: fleet.OIDC, Issuer: "i", Audience: "a",
		},
		"{provider: oidc, issuer: i, audience: a, jwksUri: j, scopes: [s, t]}": {
			Provider: fleet.OIDC, Issuer: "i", Audience: "a", JWKSURI: "j", Scopes: []string{"s", "t"},
		},
		"{provider: oauth2-client, tokenEndpoint: t, clientId: c, clientSecretRef: r}": {
			Provider: fleet.OAuth2Client, TokenEndpoint: "t", ClientID: "c", ClientSecretRef: "r",
		},
		"{provider: oauth2-client, tokenEndpoint: t, clientId: c, clientSecretRef: r, issuer: i, audience: a, jwksUri: j}": {
			Provider: fleet.OAuth2Client, TokenEndpoint: "t", ClientID: "c", ClientSecretRef: "r",
			Issuer: "i", Audience: "a", JWKSURI: "j",
		},
		"{provider: hmac, keyId: k, secretRef: 'env:S'}": {
			Provider: fleet.HMAC, Secrets: []fleet.SharedSecret{{KeyID: "k", Ref: "env:S"}},
		},
		"{provider: hmac, keys: [{keyId: k, secretRef: 'env:S', notBefore: '2026-12-01T00:00:00Z', notAfter: '2026-12-01T00:00:00Z'}]}": {
			Provider: fleet.HMAC, Secrets: []fleet.SharedSecret{{KeyID: "k", Ref: "env:S", NotBefore: day, NotAfter: day}},
		},
		"{provider: nkey, publicKey: " + keyA + "}": {
			Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keyA}},
		},
		"{provider: nkey, publicKeys: [{key: " + keyA + "}, {key: " + keyB + ", notBefore: '2026-12-01T01:00:00+01:00'}]}": {
			Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keyA}, {Key: keyB, NotBefore: day}},
		},
	} {
		got, err := authOf(t, block)
		if err != nil {
			t.Errorf("%s: %v", block, err)
			continue
		}
		for i := range got.PublicKeys {
			got.PublicKeys[i].NotBefore = utc(got.PublicKeys[i].NotBefore)
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", block, *got, want)
		}
	}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// Each provider has keys that it needs and keys that it knows; those of another
// provider are faults, so that a block never means less than it says.
func TestAuthFaults(t *testing.T) {
	for _, tt := range []struct{ block, pointer, want string }{
		{"{}", "", `the key "provider" is missing`},
		{"{provider: basic}", "/provider", "expected one of oidc, oauth2-client, hmac, nkey"},
		{"{provider: oidc, audience: a}", "", `the key "issuer" is missing`},
		{"{provider: oidc, issuer: i}", "", `the key "audience" is missing`},
		{"{provider: oidc, issuer: i, audience: a, keyId: k}", "/keyId", `unknown key "keyId"`},
		{"{provider: oauth2-client, clientId: c, clientSecretRef: r}", "", `the key "tokenEndpoint" is missing`},
		{"{provider: oauth2-client, tokenEndpoint: t, clientSecretRef: r}", "", `the key "clientId" is missing`},
		{"{provider: oauth2-client, tokenEndpoint: t, clientId: c}", "", `the key "clientSecretRef" is missing`},
		{"{provider: hmac, secretRef: r}", "", `the key "keyId" is missing`},
		{"{provider: hmac, keyId: k}", "", `the key "secretRef" is missing`},
		{"{provider: hmac, keys: []}", "/keys", "expected at least one key"},
		{"{provider: hmac, keys: [{secretRef: r}]}", "/keys/0", `the key "keyId" is missing`},
		{"{provider: hmac, keys: [{keyId: k}]}", "/keys/0", `the key "secretRef" is missing`},
		{"{provider: hmac, keys: [{keyId: k, secretRef: r, until: x}]}", "/keys/0/until", `unknown key "until"`},
		{"{provider: hmac, secretRef: r, keys: [{keyId: k, secretRef: r}]}", "/secretRef", "one key too many"},
		{"{provider: hmac, keyId: k, secretRef: r, publicKey: " + keyA + "}", "/publicKey", `unknown key "publicKey"`},
		{"{provider: nkey, publicKeys: []}", "/publicKeys", "expected at least one key"},
		{"{provider: nkey, publicKeys: [{}]}", "/publicKeys/0", `the key "key" is missing`},
		{"{provider: nkey, publicKey: " + keyA[:55] + "}", "/publicKey", "expected a public nkey of a user"},
		{"{provider: nkey, publicKey: A" + keyA[1:] + "}", "/publicKey", "expected a public nkey of a user"},
		{"{provider: nkey, publicKey: " + keyA + ", issuer: i}", "/issuer", `unknown key "issuer"`},
		{"{provider: nkey, publicKeys: [{key: " + keyA + ", notAfter: '2026-12-01'}]}", "/publicKeys/0/notAfter", "RFC 3339"},
		{"{provider: nkey, publicKeys: [{key: " + keyA + ", notBefore: '2026-12-01T00:00:01Z', notAfter: '2026-12-01T00:00:00Z'}]}",
			"/publicKeys/0/notAfter", "the key would never count"},
	} {
		_, err := authOf(t, tt.block)
		var le *fleet.LoadError
		if !errors.As(err, &le) || len(le.Faults) != 1 || le.Faults[0].Pointer != "/peers/0/auth"+tt.pointer || !strings.Contains(le.Faults[0].Message+" ("+le.Faults[0].Hint+")", tt.want) {
			t.Errorf("%s\ngot  %v\nwant %s: %s", tt.block, err, tt.pointer, tt.want)
		}
	}
}
