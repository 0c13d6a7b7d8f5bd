package approvals

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// A key is one of a person.
type key struct {
	private ed25519.PrivateKey
	signer  ssh.Signer
	line    string // of the public half
}

func newKey(t *testing.T) key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return key{private, signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))}
}

// write writes both halves as ssh-keygen does, the private one under a passphrase if there
// is one.
func (k key) write(t *testing.T, path, passphrase string) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(k.private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(k.private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{path: string(pem.EncodeToMemory(block)), path + ".pub": k.line + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serve runs an ssh-agent with the key, and returns its socket.
func (k key) serve(t *testing.T, env *clitest.Env) {
	t.Helper()
	socket := filepath.Join(env.Vars["XDG_RUNTIME_DIR"], "ssh-agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: &k.private}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, conn); _ = conn.Close() }()
		}
	}()
	env.Vars["SSH_AUTH_SOCK"] = socket
}

// startListed runs the office with a list of one approver.
func startListed(t *testing.T, k key) *clitest.Env {
	t.Helper()
	env := clitest.New(t, clitest.Office)
	path := filepath.Join(env.Dir, "desk", "agent.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	env.Write(t, "desk/agent.yaml", string(text)+"\nsecurity: {approvers: [{name: ann@example.org, key: "+k.line+"}]}\n")
	env.Start(t)
	return env
}

// The key comes from where --key says, from an ssh-agent, or from ~/.ssh; what is signed
// is shown before. A key that is not an approver's decides nothing.
func TestDecideSigns(t *testing.T) {
	t.Parallel()
	ann, eve := newKey(t), newKey(t)
	env := startListed(t, ann)
	elsewhere := filepath.Join(env.Dir, "keys", "ann")
	ann.write(t, elsewhere, "")
	locked := filepath.Join(env.Dir, "keys", "locked")
	ann.write(t, locked, "secret")
	stranger := filepath.Join(env.Dir, "keys", "eve")
	eve.write(t, stranger, "")
	id, _, ended := waits(t, env)

	for _, test := range []struct {
		d    Decision
		says string
	}{
		{Decision{}, "neither the ssh-agent nor ~/.ssh has a key of an approver (ann@example.org SHA256:"},
		{Decision{Key: filepath.Join(env.Dir, "nowhere")}, "--key: "},
		{Decision{Key: filepath.Join(env.Dir, "fleet.yaml")}, "ssh: no key found"},
		{Decision{Key: locked}, "has a passphrase, and standard input is no terminal"},
		{Decision{Key: elsewhere + ".pub"}, "the ssh-agent does not have the private half"},
		{Decision{Key: stranger}, "approval-unknown-signer"},
		{Decision{Key: elsewhere, Reason: strings.Repeat("x", approval.MaxReasonBytes+1)}, "--reason: more than"},
		{Decision{Signature: filepath.Join(env.Dir, "fleet.yaml")}, "approval-malformed-signature"},
	} {
		test.d.ID, test.d.Approve = id, true
		if err := Decide(t.Context(), &env.Env, test.d); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test.d, err)
		}
	}

	env.Reset()
	env.Format = output.Table
	if err := Decide(t.Context(), &env.Env, Decision{ID: id, Approve: true, Key: elsewhere, Reason: "ticket 17"}); err != nil {
		t.Error(err)
	}
	shown := env.Err.String()
	for _, part := range []string{`agent://desk calls "sign" of agent://clerk`, `"name": "Ada"`, "ann@example.org (" + elsewhere + ")", `"decision": "approve"`, `"nonce": "`, `"reason": "ticket 17"`} {
		if !strings.Contains(shown, part) {
			t.Errorf("%q is not shown in\n%s", part, shown)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	id, _, ended = waits(t, env)
	ann.write(t, filepath.Join(env.Vars["HOME"], ".ssh", "id_ed25519"), "")
	if err := Decide(t.Context(), &env.Env, Decision{ID: id}); err != nil {
		t.Errorf("the key in ~/.ssh: %v", err)
	}
	if err := <-ended; clitest.Code(err) != cli.ExitCall {
		t.Errorf("denied: %v", err)
	}

	// An ssh-agent comes before ~/.ssh, and has the private half of a .pub file.
	if err := os.Remove(filepath.Join(env.Vars["HOME"], ".ssh", "id_ed25519")); err != nil {
		t.Fatal(err)
	}
	ann.serve(t, env)
	for _, file := range []string{"", elsewhere + ".pub"} {
		id, _, ended = waits(t, env)
		if err := Decide(t.Context(), &env.Env, Decision{ID: id, Approve: true, Key: file}); err != nil {
			t.Errorf("the ssh-agent: %v", err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// The statement that is written can be signed anywhere; the signature decides.
func TestShowStatement(t *testing.T) {
	t.Parallel()
	ann := newKey(t)
	env := startListed(t, ann)
	id, _, ended := waits(t, env)
	env.Reset()
	env.Format = output.Table
	r := ShowRequest{Decision: Decision{ID: id[:20], Reason: "not today"}, Statement: true}
	if err := Show(t.Context(), &env.Env, r); err != nil {
		t.Fatal(err)
	}
	text := []byte(env.Out.String())
	s, err := approval.Parse(text)
	if err != nil || s.ApprovalID != id || s.Decision != approval.Deny || s.Reason != "not today" || s.Caller != "agent://desk" {
		t.Errorf("%v: %s", err, text)
	}
	r.Statement = false
	if err := Show(t.Context(), &env.Env, r); err != nil || !strings.Contains(env.Out.String(), "who may sign: ann@example.org SHA256:") || !strings.Contains(env.Out.String(), "Ada") {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Reset()
	env.Format = output.JSON
	var shown waitingCall
	if err := Show(t.Context(), &env.Env, r); err != nil || json.Unmarshal([]byte(env.Out.String()), &shown) != nil || shown.Nonce != s.Nonce {
		t.Errorf("%v: %s", err, env.Out)
	}
	signature, err := approval.Sign(ann.signer, text)
	if err != nil {
		t.Fatal(err)
	}
	file := env.Write(t, "statement.json.sig", string(signature))
	for _, test := range []struct {
		d    Decision
		says string
	}{
		{Decision{Approve: true, Reason: "not today"}, "approval-bad-signature"},
		{Decision{Reason: "today"}, "approval-bad-signature"},
		{Decision{Reason: "not today"}, ""},
	} {
		test.d.ID, test.d.Signature = id, file
		if err := Decide(t.Context(), &env.Env, test.d); test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%+v: %v", test.d, err)
		}
	}
	if err := <-ended; clitest.Code(err) != cli.ExitCall {
		t.Errorf("denied: %v", err)
	}
	env.Reset()
	env.Format = output.Table
	if err := Signers(t.Context(), &env.Env, "agent://desk"); err != nil || !strings.HasPrefix(env.Out.String(), `ann@example.org namespaces="agentd-approval@v1" ssh-ed25519 `) {
		t.Errorf("%v: %s", err, env.Out)
	}
	if err := Signers(t.Context(), &env.Env, "nobody"); clitest.Code(err) != cli.ExitUsage {
		t.Errorf("an unknown agent: %v", err)
	}
}

// Where nobody is listed, a signature is a mistake: it would be recorded nowhere.
func TestNobodyIsListed(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	id, _, ended := waits(t, env)
	if err := Decide(t.Context(), &env.Env, Decision{ID: id, Key: "x"}); clitest.Code(err) != cli.ExitUsage {
		t.Errorf("a key: %v", err)
	}
	if err := Decide(t.Context(), &env.Env, Decision{ID: id}); err != nil {
		t.Error(err)
	}
	<-ended
}

// What a stranger puts into a payload neither moves the cursor nor hides.
func TestVisible(t *testing.T) {
	if got := visible([]byte("{\n \"ü\": \"\x1b[2J\u202e\u200b\xff\"}")); got != "{\n \"ü\": \"\\u001b[2J\\u202e\\u200b\\ufffd\"}" {
		t.Errorf("%q", got)
	}
}
