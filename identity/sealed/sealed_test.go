package sealed_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"

	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/identity/sealed"
)

// some are the keys of an agent in the middle of a rotation.
func some(t *testing.T) sealed.Keys {
	t.Helper()
	now := time.Now()
	own, err := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}.Rotate(now, now.Add(time.Hour), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return sealed.Keys{Agent: "agent://desk", Own: own}
}

// sshKey returns a private key in the format of OpenSSH and the line of its public key.
func sshKey(t *testing.T, private any, passphrase string) (data []byte, public string) {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "somebody")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "somebody", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func ed25519Key(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func never() ([]byte, error) { return nil, errors.New("nobody is to be asked") }

// Keys come out as they went in, for every kind of recipient, and for nobody else.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	quantum, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	plain, plainPublic := sshKey(t, ed25519Key(t), "")
	locked, lockedPublic := sshKey(t, ed25519Key(t), "open sesame")
	old, oldPublic := sshKey(t, rsaKey, "")
	other, _ := sshKey(t, ed25519Key(t), "")
	for name, test := range map[string]struct {
		recipient  string
		identity   []byte
		passphrase func() ([]byte, error)
	}{
		"age":                {own.Recipient().String(), []byte("# created\n" + own.String() + "\n"), never},
		"age, post-quantum":  {quantum.Recipient().String(), []byte(quantum.String()), never},
		"ssh-ed25519":        {plainPublic, plain, never},
		"ssh-ed25519 locked": {lockedPublic, locked, func() ([]byte, error) { return []byte("open sesame"), nil }},
		"ssh-rsa":            {oldPublic, old, never},
		"two":                {"# both\n\n" + own.Recipient().String() + "\r\n" + plainPublic, plain, never},
	} {
		keys := some(t)
		to, err := sealed.ParseRecipients(test.recipient)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, err := sealed.Seal(keys, to...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, k := range keys.Own {
			if bytes.Contains(data, []byte(k.Seed)) {
				t.Errorf("%s: the seed is there", name)
			}
		}
		with, err := sealed.ParseIdentities(test.identity, test.passphrase)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := sealed.Open(data, with...)
		if err != nil || !reflect.DeepEqual(got, keys) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, keys)
		}
		// It is a file of age, whatever program wrote or reads it.
		r, err := age.Decrypt(armor.NewReader(bytes.NewReader(data)), with...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text, err := io.ReadAll(r); err != nil || !bytes.Contains(text, []byte(keys.Own[1].Seed)) {
			t.Errorf("%s: age reads %s, %v", name, text, err)
		}
		stranger, err := sealed.ParseIdentities(other, never)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sealed.Open(data, stranger...); !errors.Is(err, sealed.ErrNotRecipient) {
			t.Errorf("%s: opened by a stranger: %v", name, err)
		}
		flipped := bytes.Clone(data)
		at := len(flipped) - len("-----END AGE ENCRYPTED FILE-----\n") - 20
		flipped[at] ^= 1
		if _, err := sealed.Open(flipped, with...); err == nil {
			t.Errorf("%s: changed on the way, and opened", name)
		}
	}
}

// A passphrase opens what it has sealed, and another does not.
func TestPassphrase(t *testing.T) {
	t.Parallel()
	keys := some(t)
	to, err := age.NewScryptRecipient("right")
	if err != nil {
		t.Fatal(err)
	}
	to.SetWorkFactor(10) // the default takes a second
	data, err := sealed.Seal(keys, to)
	if err != nil {
		t.Fatal(err)
	}
	for passphrase, want := range map[string]error{"right": nil, "wrong": sealed.ErrNotRecipient} {
		with, err := age.NewScryptIdentity(passphrase)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sealed.Open(data, with); !errors.Is(err, want) || want == nil && !reflect.DeepEqual(got, keys) {
			t.Errorf("%s: %+v, %v", passphrase, got, err)
		}
	}
}

// What is no recipient, or no identity, is refused without being shown: it may be a
// secret in the wrong place.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecdsaPrivate, ecdsaPublic := sshKey(t, curve, "")
	_, public := sshKey(t, ed25519Key(t), "")
	for text, want := range map[string]string{
		"": "there is no recipient", "# nobody\n": "there is no recipient", own.String(): "not a recipient",
		ecdsaPublic: "not a recipient", "age1xyz": "not a recipient", public + "hello": "line 2: not a recipient",
	} {
		if _, err := sealed.ParseRecipients(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), own.String()) {
			t.Errorf("recipient %q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "neither a file of age identities", "AGE-SECRET-KEY-1OOPS": "neither a file of age identities",
		string(ecdsaPrivate): "SSH private key: ", "-----BEGIN OPENSSH PRIVATE KEY-----\n": "SSH private key: ",
	} {
		if _, err := sealed.ParseIdentities([]byte(text), never); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "OOPS") {
			t.Errorf("identity %q: %v, want %q", text, err, want)
		}
	}
}

// Anybody can seal anything: what is inside is read with care.
func TestForeignContent(t *testing.T) {
	t.Parallel()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	keys, other := some(t), some(t)
	file, err := identity.FormatKeys([]identity.OwnKey{{Public: keys.Own[0].Public, Seed: other.Own[0].Seed}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`hello`: "not the keys of an agent",
		`{"version":2,"agent":"agent://desk","keys":{"version":1,"keys":[]}}`:                   "version 2 is not supported",
		`{"version":1,"agent":"desk","keys":{"version":1,"keys":[]}}`:                           "agent must be",
		`{"version":1,"agent":"agent://desk","keys":{"version":1,"keys":[]},"run":"rm"}`:        `unknown field "run"`,
		`{"version":1,"agent":"agent://desk","keys":` + string(file) + `}`:                      "the seed is not that of its publicKey",
		`{"version":1,"agent":"agent://desk","keys":"` + strings.Repeat("x", 2<<20) + `"}`:      "larger than",
		`{"version":1,"agent":"agent://desk","keys":{"version":1,"keys":[{"publicKey":"U"}]}} `: "key 1",
	} {
		var data bytes.Buffer
		w, err := age.Encrypt(&data, own.Recipient()) // without armor, as other programs may
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = sealed.Open(data.Bytes(), own)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), other.Own[0].Seed) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	if _, err := sealed.Open([]byte("-----BEGIN AGE ENCRYPTED FILE-----\n"), own); err == nil {
		t.Error("half a file was opened")
	}
}
