package approval

import (
	"bytes"
	"strings"

	"golang.org/x/crypto/ssh"
)

// An Approver is a person who may decide, by one key. A person may have several.
type Approver struct {
	Name string
	Key  ssh.PublicKey
}

// Fingerprint is the key's, as `ssh-keygen -l` prints it.
func (a Approver) Fingerprint() string { return ssh.FingerprintSHA256(a.Key) }

// Line is the approver in the form of an allowed_signers file, for `ssh-keygen -Y verify`.
func (a Approver) Line() string {
	return a.Name + ` namespaces="` + Namespace + `" ` + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(a.Key)))
}

// Verify checks that one of the approvers has signed a statement, and returns both. It
// judges neither the time nor which call the statement is about.
func Verify(approvers []Approver, statement, signature []byte) (Statement, Approver, error) {
	if len(signature) == 0 {
		return Statement{}, Approver{}, refuse(Unsigned, nil, "the decision is not signed")
	}
	s, err := Parse(statement)
	if err != nil {
		return Statement{}, Approver{}, err
	}
	sig, err := ParseSignature(signature)
	if err != nil {
		return Statement{}, Approver{}, err
	}
	if err := sig.Verify(statement); err != nil {
		return Statement{}, Approver{}, err
	}
	signer, ok := find(approvers, sig.Key)
	if !ok {
		return Statement{}, Approver{}, refuse(UnknownSigner, nil, "the key %s is no approver's", ssh.FingerprintSHA256(sig.Key))
	}
	return s, signer, nil
}

// find returns the approver with a key.
func find(approvers []Approver, key ssh.PublicKey) (Approver, bool) {
	wanted := key.Marshal()
	for _, a := range approvers {
		if bytes.Equal(a.Key.Marshal(), wanted) {
			return a, true
		}
	}
	return Approver{}, false
}
