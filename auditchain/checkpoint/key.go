package checkpoint

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// A Key is an Ed25519 key pair that signs checkpoints under a name: the origin
// of a log, or the name of a witness. It is safe for concurrent use.
type Key struct {
	name     string
	secret   string
	verifier string
	signer   note.Signer
	private  ed25519.PrivateKey
}

// GenerateKey generates a key pair. The name must not be empty or contain
// whitespace or plus signs.
func GenerateKey(name string) (*Key, error) {
	secret, _, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: generating a key: %w", err)
	}
	return ParseKey(secret)
}

// ParseKey parses what [Key.Secret] returns. The error repeats none of it.
func ParseKey(secret string) (*Key, error) {
	secret = strings.TrimSpace(secret)
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: not a private key")
	}
	// NewSigner has checked the form PRIVATE+KEY+<name>+<hash>+<base64>, where
	// the last part is an algorithm byte and the seed.
	fields := strings.SplitN(secret, "+", 5)
	raw, err := base64.StdEncoding.DecodeString(fields[len(fields)-1])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return nil, fmt.Errorf("checkpoint: not a private key")
	}
	private := ed25519.NewKeyFromSeed(raw[1:])
	verifier, err := note.NewEd25519VerifierKey(signer.Name(), private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: not a private key")
	}
	return &Key{name: signer.Name(), secret: secret, verifier: verifier, signer: signer, private: private}, nil
}

// Name returns the name that the key signs under.
func (k *Key) Name() string { return k.name }

// Secret returns the private key in the form of package note, to be kept in a
// file that only its owner can read.
func (k *Key) Secret() string { return k.secret }

// Verifier returns the public key in the form of package note:
// <name>+<hash>+<base64>.
func (k *Key) Verifier() string { return k.verifier }

// Signer signs notes with the key.
func (k *Key) Signer() note.Signer { return k.signer }

// String returns the public key, so that a key in a log line reveals no secret.
func (k *Key) String() string { return k.verifier }
