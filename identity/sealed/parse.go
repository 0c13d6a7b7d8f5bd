package sealed

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"
)

// ParseRecipients reads recipients, one a line: of age (age1…), or SSH public keys
// (ssh-ed25519, ssh-rsa). Lines that are empty or begin with # are skipped.
func ParseRecipients(text string) ([]age.Recipient, error) {
	var all []age.Recipient
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		r, err := parseRecipient(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		all = append(all, r...)
	}
	if all == nil {
		return nil, errors.New("there is no recipient: age1… or an SSH public key")
	}
	return all, nil
}

// errRecipient does not repeat the text, which may be a secret in the wrong place.
var errRecipient = errors.New("not a recipient: expected age1…, or an SSH public key of the type ssh-ed25519 or ssh-rsa")

func parseRecipient(line string) ([]age.Recipient, error) {
	if strings.HasPrefix(line, "age1") {
		r, err := age.ParseRecipients(strings.NewReader(line))
		if err != nil {
			return nil, errRecipient
		}
		return r, nil
	}
	r, err := agessh.ParseRecipient(line)
	if err != nil {
		return nil, errRecipient
	}
	return []age.Recipient{r}, nil
}

// ParseIdentities reads a file that opens sealed keys: identities of age, or an SSH private
// key. passphrase is asked for that of an encrypted SSH key, when the key is needed.
func ParseIdentities(data []byte, passphrase func() ([]byte, error)) ([]age.Identity, error) {
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		all, err := age.ParseIdentities(bytes.NewReader(data))
		if err != nil {
			return nil, errors.New("neither a file of age identities (AGE-SECRET-KEY-…) nor an SSH private key")
		}
		return all, nil
	}
	one, err := agessh.ParseIdentity(data)
	if locked, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		if locked.PublicKey == nil { // PEM of before OpenSSH 7.8
			return nil, errors.New("an encrypted SSH key in an old format: write it anew with ssh-keygen -p")
		}
		one, err = agessh.NewEncryptedSSHIdentity(locked.PublicKey, data, passphrase)
	}
	if err != nil {
		return nil, fmt.Errorf("SSH private key: %w", err)
	}
	return []age.Identity{one}, nil
}
