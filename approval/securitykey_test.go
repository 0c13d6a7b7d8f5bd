package approval_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/agentd/agentd/approval"
)

// A securityKey signs as a FIDO authenticator does for OpenSSH (PROTOCOL.u2f), in
// software.
type securityKey struct {
	private ed25519.PrivateKey
	public  ssh.PublicKey
	flags   byte // 1: the user touched it
	counter uint32
}

const application = "ssh:"

func newSecurityKey(t testing.TB) *securityKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, application}))
	if err != nil {
		t.Fatal(err)
	}
	return &securityKey{private: private, public: key, flags: 1}
}

func (k *securityKey) PublicKey() ssh.PublicKey { return k.public }

func (k *securityKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	k.counter++
	app, message := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	state := ssh.Marshal(struct {
		Flags   byte
		Counter uint32
	}{k.flags, k.counter})
	sum := append(append(app[:], state...), message[:]...)
	signature, err := k.private.Sign(nil, sum, crypto.Hash(0))
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: signature, Rest: state}, err
}

// A security key approves with a touch, and not without one: a program that can reach the
// plugged-in key must not sign for its owner.
func TestSecurityKey(t *testing.T) {
	key := newSecurityKey(t)
	ann := approval.Approver{Name: "ann@example.org", Key: key.PublicKey()}
	text := encode(t, statement())
	good := sign(t, key, text)
	if _, who, err := approval.Verify([]approval.Approver{ann}, text, good); err != nil || who.Name != ann.Name {
		t.Errorf("with a touch: %v", err)
	}
	key.flags = 0
	if _, _, err := approval.Verify([]approval.Approver{ann}, text, sign(t, key, text)); approval.ReasonOf(err) != approval.BadSignature {
		t.Errorf("without a touch: %v", err)
	}

	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	dir := t.TempDir()
	allowed, file := filepath.Join(dir, "allowed_signers"), filepath.Join(dir, "statement.sig")
	if err := os.WriteFile(allowed, []byte(ann.Line()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, text, keygen, "-Y", "verify", "-f", allowed, "-I", ann.Name, "-n", approval.Namespace, "-s", file)
	if !strings.Contains(out, "Good \""+approval.Namespace+"\" signature") {
		t.Errorf("ssh-keygen: %s", out)
	}
}
