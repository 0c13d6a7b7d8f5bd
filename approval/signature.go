package approval

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"slices"

	"golang.org/x/crypto/ssh"
)

// Namespace is the purpose of a signature, for `ssh-keygen -Y sign -n`. It is part of
// the signed bytes.
const Namespace = "agentd-approval@v1"

const (
	// MaxSignatureBytes bounds an armored signature: one of a 16-kbit RSA key has 6 KiB.
	MaxSignatureBytes = 16 << 10

	armorType = "SSH SIGNATURE"
	magic     = "SSHSIG"
	// minRSABits is what NIST SP 800-57 allows beyond 2030, less only for keys that
	// people already have.
	minRSABits = 2048
)

// blob is a signature as PROTOCOL.sshsig of OpenSSH lays it out, after the magic.
type blob struct {
	Version       uint32
	PublicKey     string
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     string
}

// signedData is what the key signs, after the magic.
type signedData struct {
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Hash          string
}

// A Signature is one that has been read and not yet verified.
type Signature struct {
	// Key is the key that it claims to be by.
	Key ssh.PublicKey
	// Namespace is what it was made for.
	Namespace string

	reserved, hash string
	signature      ssh.Signature
}

// digest hashes a message by an algorithm of PROTOCOL.sshsig.
func digest(algorithm string, message []byte) (sum []byte, ok bool) {
	switch algorithm {
	case "sha256":
		s := sha256.Sum256(message)
		return s[:], true
	case "sha512":
		s := sha512.Sum512(message)
		return s[:], true
	}
	return nil, false
}

// algorithms are those by which a key of a type may sign; nil for a type that is not
// accepted. RSA with SHA-1 is none, although x/crypto would verify it.
func algorithms(keyType string) []string {
	switch keyType {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return []string{keyType}
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return nil
}

// CheckKey returns why a key may not sign approvals, or nil.
func CheckKey(key ssh.PublicKey) error {
	if algorithms(key.Type()) == nil {
		return refuse(UnusableKey, nil, "a key of type %.64q cannot sign approvals: use ssh-ed25519, ecdsa, rsa, or their sk- forms", key.Type())
	}
	if plain, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := plain.CryptoPublicKey().(*rsa.PublicKey); ok && public.N.BitLen() < minRSABits {
			return refuse(UnusableKey, nil, "the RSA key has %d bits, and %d are the least", public.N.BitLen(), minRSABits)
		}
	}
	return nil
}

// ParseKey reads a public key in the form of an authorized_keys line: type, key, and
// maybe a comment. Options are refused, since agentd would not heed them.
func ParseKey(line string) (ssh.PublicKey, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		return nil, refuse(UnusableKey, nil, "not a public key of SSH, such as %q", "ssh-ed25519 AAAA… ann@example.org")
	case len(options) > 0:
		return nil, refuse(UnusableKey, nil, "the options %.64q before the key have no effect here", options)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, refuse(UnusableKey, nil, "more than one key")
	}
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	// Read again: the options of a line may have set what a key by itself has not.
	return ssh.ParsePublicKey(key.Marshal())
}

// Sign returns the armored signature of a text under [Namespace].
func Sign(signer ssh.Signer, text []byte) ([]byte, error) {
	if err := CheckKey(signer.PublicKey()); err != nil {
		return nil, err
	}
	const hash = "sha512"
	sum, _ := digest(hash, text)
	data := append([]byte(magic), ssh.Marshal(signedData{Namespace: Namespace, HashAlgorithm: hash, Hash: string(sum)})...)
	signature, err := signWith(signer, data)
	if err != nil {
		return nil, refuse(UnusableKey, err, "the key does not sign")
	}
	out := append([]byte(magic), ssh.Marshal(blob{
		Version: 1, PublicKey: string(signer.PublicKey().Marshal()), Namespace: Namespace, HashAlgorithm: hash,
		Signature: string(ssh.Marshal(signature)),
	})...)
	return pem.EncodeToMemory(&pem.Block{Type: armorType, Bytes: out}), nil
}

// signWith signs with an algorithm that is accepted: an RSA key would use SHA-1 by
// default.
func signWith(signer ssh.Signer, data []byte) (*ssh.Signature, error) {
	if able, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		return able.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	}
	return signer.Sign(rand.Reader, data)
}

// ParseSignature reads an armored signature, and verifies nothing.
func ParseSignature(armored []byte) (*Signature, error) {
	malformed := func(err error, why string) (*Signature, error) {
		return nil, refuse(MalformedSignature, err, "the signature is not what `ssh-keygen -Y sign` writes: %s", why)
	}
	if len(armored) > MaxSignatureBytes {
		return malformed(nil, "it is too long")
	}
	// pem would skip what precedes the armor, and what it cannot read.
	armored = bytes.TrimSpace(armored)
	block, rest := pem.Decode(armored)
	if block == nil || block.Type != armorType || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(armored, []byte("-----BEGIN "+armorType)) {
		return malformed(nil, "there is no armor of type "+armorType)
	}
	data, ok := bytes.CutPrefix(block.Bytes, []byte(magic))
	var b blob
	if !ok || ssh.Unmarshal(data, &b) != nil || b.Version != 1 {
		return malformed(nil, "it is of no known version")
	}
	s := &Signature{Namespace: b.Namespace, reserved: b.Reserved, hash: b.HashAlgorithm}
	var err error
	if s.Key, err = ssh.ParsePublicKey([]byte(b.PublicKey)); err != nil {
		return malformed(err, "its key cannot be read")
	}
	if err := ssh.Unmarshal([]byte(b.Signature), &s.signature); err != nil {
		return malformed(err, "its inner signature cannot be read")
	}
	return s, nil
}

// Verify returns nil if s is a signature of text under [Namespace], by an algorithm that
// is accepted. It says nothing about whose key that is.
func (s *Signature) Verify(text []byte) error {
	if s.Namespace != Namespace {
		return refuse(WrongNamespace, nil, "the signature was made for %.64q, and not for %q", s.Namespace, Namespace)
	}
	if err := CheckKey(s.Key); err != nil {
		return err
	}
	if !slices.Contains(algorithms(s.Key.Type()), s.signature.Format) {
		return refuse(UnusableKey, nil, "a signature by %.64q is not accepted", s.signature.Format)
	}
	sum, ok := digest(s.hash, text)
	if !ok {
		return refuse(UnusableKey, nil, "a signature over the hash %.64q is not accepted", s.hash)
	}
	data := append([]byte(magic), ssh.Marshal(signedData{Namespace: s.Namespace, Reserved: s.reserved, HashAlgorithm: s.hash, Hash: string(sum)})...)
	if err := s.Key.Verify(data, &s.signature); err != nil {
		return refuse(BadSignature, nil, "the signature is not one of this statement by the key %s", ssh.FingerprintSHA256(s.Key))
	}
	return nil
}
