package natstest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// An Operator owns a NATS system in operator mode.
type Operator struct {
	// Conf is the configuration of its servers, in nats-server's language. They take
	// accounts that are sent to them.
	Conf string
	// Creds is the path of the credentials of a user of the system account, and Signing
	// that of the seed of a signing key.
	Creds, Signing string

	signing nkeys.KeyPair
}

// SigningKey is the key of Signing.
func (o *Operator) SigningKey() nkeys.KeyPair { return o.signing }

// NewOperator makes an operator with a system account.
func NewOperator(t testing.TB) *Operator {
	t.Helper()
	must := func(pair nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return pair, public
	}
	text := func(token string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	master, masterKey := must(nkeys.CreateOperator())
	signing, signingKey := must(nkeys.CreateOperator())
	system, systemKey := must(nkeys.CreateAccount())
	user, userKey := must(nkeys.CreateUser())
	claims := jwt.NewOperatorClaims(masterKey)
	claims.Name, claims.SystemAccount = "test", systemKey
	claims.SigningKeys.Add(signingKey)
	account := jwt.NewAccountClaims(systemKey)
	account.Name = "SYS"
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(text(jwt.NewUserClaims(userKey).Encode(system)), seed)
	if err != nil {
		t.Fatal(err)
	}
	o := &Operator{signing: signing, Creds: filepath.Join(t.TempDir(), "system.creds"), Signing: filepath.Join(t.TempDir(), "signing.nk")}
	if seed, err = signing.Seed(); err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{o.Creds: creds, o.Signing: seed} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.Conf = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: { type: full, dir: %q }\nresolver_preload: { %s: %s }\n",
		text(claims.Encode(master)), systemKey, filepath.Join(t.TempDir(), "jwt"), systemKey, text(account.Encode(signing)))
	return o
}
