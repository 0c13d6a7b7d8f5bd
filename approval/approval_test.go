package approval_test

import (
	"crypto"
	"crypto/dsa" //nolint:staticcheck // only to be refused
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/envelope"
)

// statement is one that an agent might ask for.
func statement() approval.Statement {
	return approval.Statement{
		ApprovalID: "019aa8f4-5c1e-7b02-9d3c-2f6e8a417c55", Nonce: "4c8ba1f0", AskedBy: "agent://caller",
		Caller: "agent://caller", Callee: "agent://callee", Capability: "pay", CorrelationID: "c-1", Tenant: "acme",
		PayloadSHA256: envelope.DigestPayload([]byte(`{"cents":4711}`)).String(), Expires: time.Date(2026, 11, 22, 8, 30, 0, 120_000_000, time.UTC),
		Decision: approval.Approve, Reason: "ticket 17",
	}
}

func encode(t testing.TB, s approval.Statement) []byte {
	t.Helper()
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newKey makes a key of each kind that ssh-keygen makes by default or on demand.
func newKey(t testing.TB, kind string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signerOf(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromSigner(newKey(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func sign(t testing.TB, signer ssh.Signer, text []byte) []byte {
	t.Helper()
	armored, err := approval.Sign(signer, text)
	if err != nil {
		t.Fatal(err)
	}
	return armored
}

func TestSignAndVerify(t *testing.T) {
	for _, kind := range []string{"ed25519", "rsa", "ecdsa"} {
		signer := signerOf(t, kind)
		ann := approval.Approver{Name: "ann", Key: signer.PublicKey()}
		bob := approval.Approver{Name: "bob", Key: signerOf(t, "ed25519").PublicKey()}
		text := encode(t, statement())
		s, who, err := approval.Verify([]approval.Approver{bob, ann}, text, sign(t, signer, text))
		if err != nil || who.Name != "ann" || s != statement() {
			t.Errorf("%s: %v, %+v, %+v", kind, err, who, s)
		}
	}
}

// Whatever part of the statement is altered, the signature is not one of it; and a
// statement that is signed anew is still not about the waiting call.
func TestEveryFieldIsBound(t *testing.T) {
	signer := signerOf(t, "ed25519")
	ann := []approval.Approver{{Name: "ann", Key: signer.PublicKey()}}
	original := encode(t, statement())
	signature := sign(t, signer, original)
	var members map[string]any
	if err := json.Unmarshal(original, &members); err != nil {
		t.Fatal(err)
	}
	alterations := map[string]func(*approval.Statement){
		"approvalId":    func(s *approval.Statement) { s.ApprovalID = "another" },
		"nonce":         func(s *approval.Statement) { s.Nonce = "another" },
		"askedBy":       func(s *approval.Statement) { s.AskedBy = "agent://callee" },
		"caller":        func(s *approval.Statement) { s.Caller = "agent://another" },
		"callee":        func(s *approval.Statement) { s.Callee = "agent://another" },
		"capability":    func(s *approval.Statement) { s.Capability = "refund" },
		"correlationId": func(s *approval.Statement) { s.CorrelationID = "c-2" },
		"tenant":        func(s *approval.Statement) { s.Tenant = "" },
		"payloadSha256": func(s *approval.Statement) {
			s.PayloadSHA256 = envelope.DigestPayload([]byte(`{"cents": 4711}`)).String()
		},
		"expires":  func(s *approval.Statement) { s.Expires = s.Expires.Add(time.Millisecond) },
		"decision": func(s *approval.Statement) { s.Decision = approval.Deny },
		"reason":   func(s *approval.Statement) { s.Reason = "" },
	}
	if len(alterations) != len(members) {
		t.Errorf("%d members are altered here, and a statement has %d: %s", len(alterations), len(members), original)
	}
	for name, alter := range alterations {
		if _, has := members[name]; !has {
			t.Errorf("a statement has no %s", name)
		}
		s := statement()
		alter(&s)
		text := encode(t, s)
		if _, _, err := approval.Verify(ann, text, signature); approval.ReasonOf(err) != approval.BadSignature {
			t.Errorf("%s altered: %v", name, err)
		}
		got, _, err := approval.Verify(ann, text, sign(t, signer, text))
		if err != nil {
			t.Fatal(err)
		}
		err = got.Matches(statement())
		if free := name == "decision" || name == "reason"; free != (err == nil) {
			t.Errorf("%s signed anew: %v", name, err)
		} else if !free && (approval.ReasonOf(err) != approval.OtherCall || name != "expires" && !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// armored makes a signature whose parts a test chooses.
func armored(t testing.TB, signer ssh.Signer, text []byte, namespace, hash, algorithm string) []byte {
	t.Helper()
	type signed struct{ Namespace, Reserved, Hash, Sum string }
	type whole struct {
		Version                                   uint32
		Key, Namespace, Reserved, Hash, Signature string
	}
	sum := crypto.SHA512.New()
	if hash != "sha512" {
		sum = crypto.SHA256.New()
	}
	sum.Write(text)
	data := append([]byte("SSHSIG"), ssh.Marshal(signed{namespace, "", hash, string(sum.Sum(nil))})...)
	var signature *ssh.Signature
	var err error
	if algorithm != "" {
		signature, err = signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, data, algorithm)
	} else {
		signature, err = signer.Sign(rand.Reader, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := append([]byte("SSHSIG"), ssh.Marshal(whole{1, string(signer.PublicKey().Marshal()), namespace, "", hash, string(ssh.Marshal(signature))})...)
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: out})
}

func TestRefusals(t *testing.T) {
	ed, rsaKey := signerOf(t, "ed25519"), signerOf(t, "rsa")
	all := []approval.Approver{{Name: "ann", Key: ed.PublicKey()}, {Name: "bob", Key: rsaKey.PublicKey()}}
	text := encode(t, statement())
	good := sign(t, ed, text)
	for _, test := range []struct {
		name                 string
		statement, signature []byte
		want                 approval.Reason
	}{
		{"none", text, nil, approval.Unsigned},
		{"another purpose", text, armored(t, ed, text, "git", "sha512", ""), approval.WrongNamespace},
		{"no purpose", text, armored(t, ed, text, "", "sha512", ""), approval.WrongNamespace},
		{"SHA-256 is fine", text, armored(t, ed, text, approval.Namespace, "sha256", ""), 0},
		{"another hash", text, armored(t, ed, text, approval.Namespace, "md5", ""), approval.UnusableKey},
		{"RSA with SHA-256 is fine", text, armored(t, rsaKey, text, approval.Namespace, "sha512", ssh.KeyAlgoRSASHA256), 0},
		{"RSA with SHA-1", text, armored(t, rsaKey, text, approval.Namespace, "sha512", ssh.KeyAlgoRSA), approval.UnusableKey},
		{"a stranger's", text, sign(t, signerOf(t, "ed25519"), text), approval.UnknownSigner},
		{"text before the armor", text, append([]byte("x\n"), good...), approval.MalformedSignature},
		{"text after the armor", text, append(good[:len(good):len(good)], "x\n"...), approval.MalformedSignature},
		{"white space around it", text, []byte("\n" + string(good) + "\n"), 0},
		{"another armor", text, []byte(strings.ReplaceAll(string(good), "SSH SIGNATURE", "PGP SIGNATURE")), approval.MalformedSignature},
		{"cut", text, pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: []byte("SSHSIG\x00\x00\x00\x01")}), approval.MalformedSignature},
		{"too long", text, []byte(strings.Repeat("x", approval.MaxSignatureBytes+1)), approval.MalformedSignature},
		{"no inner signature", text, pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte("SSHSIG"),
			ssh.Marshal(struct {
				Version                              uint32
				Key, Namespace, Reserved, Hash, Text string
			}{1, string(ed.PublicKey().Marshal()), approval.Namespace, "", "sha512", "x"})...)}), approval.MalformedSignature},
		{"padded beyond the bound", text, append([]byte(strings.Repeat("\n", approval.MaxSignatureBytes)), good...), approval.MalformedSignature},
		{"no statement", nil, good, approval.MalformedStatement},
		{"a newline after the statement", append(text[:len(text):len(text)], '\n'), good, approval.MalformedStatement},
		{"a key twice", []byte(strings.Replace(string(text), `"tenant"`, `"tenant":"acme","tenant"`, 1)), good, approval.MalformedStatement},
		{"an unknown key", []byte(strings.Replace(string(text), `{`, `{"a":1,`, 1)), good, approval.MalformedStatement},
		{"another decision", []byte(strings.Replace(string(text), `"approve"`, `"maybe"`, 1)), good, approval.MalformedStatement},
		{"a large statement", []byte(strings.Repeat(" ", approval.MaxStatementBytes+1)), good, approval.MalformedStatement},
	} {
		if _, _, err := approval.Verify(all, test.statement, test.signature); approval.ReasonOf(err) != test.want || (err == nil) != (test.want == 0) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	// Who is taken off the list may no longer decide.
	if _, _, err := approval.Verify(all[1:], text, good); approval.ReasonOf(err) != approval.UnknownSigner {
		t.Errorf("removed: %v", err)
	}
}

func TestParseKey(t *testing.T) {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signerOf(t, "ed25519").PublicKey())))
	small, err := rsa.GenerateKey(rand.Reader, 2047)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := ssh.NewPublicKey(&small.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: signerOf(t, "ed25519").PublicKey(), CertType: ssh.UserCert}
	if err := certificate.SignCert(rand.Reader, signerOf(t, "ed25519")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, line, says string }{
		{"plain", line, ""},
		{"comment", line + " ann@example.org", ""},
		{"options", `command="/bin/sh" ` + line, "have no effect here"},
		{"two", line + "\n" + line, "more than one key"},
		{"none", "", "not a public key"},
		{"private", "-----BEGIN OPENSSH PRIVATE KEY-----", "not a public key"},
		{"weak", string(ssh.MarshalAuthorizedKey(weak)), "2047 bits"},
		{"certificate", string(ssh.MarshalAuthorizedKey(certificate)), "cannot sign approvals"},
		{"DSA", dsaLine(t), "cannot sign approvals"},
	} {
		key, err := approval.ParseKey(test.line)
		if test.says == "" && (err != nil || string(key.Marshal()) == "") || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// dsaLine is a DSA key, which OpenSSH makes no more.
func dsaLine(t *testing.T) string {
	t.Helper()
	var key dsa.PrivateKey
	if err := dsa.GenerateParameters(&key.Parameters, rand.Reader, dsa.L1024N160); err != nil {
		t.Fatal(err)
	}
	if err := dsa.GenerateKey(&key, rand.Reader); err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(public))
}

// newKeyFile writes a new private key as OpenSSH does.
func newKeyFile(t testing.TB, kind string) (path string) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(newKey(t, kind), "ann")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "id_"+kind)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What ssh-keygen signs is verified here, and what is signed here ssh-keygen verifies.
func TestSSHKeygen(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	for _, kind := range []string{"ed25519", "rsa", "ecdsa"} {
		t.Run(kind, func(t *testing.T) {
			path := newKeyFile(t, kind)
			private, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := ssh.ParsePrivateKey(private)
			if err != nil {
				t.Fatal(err)
			}
			ann := approval.Approver{Name: "ann@example.org", Key: signer.PublicKey()}
			text := encode(t, statement())
			file := filepath.Join(t.TempDir(), "statement.json")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}

			run(t, nil, keygen, "-Y", "sign", "-n", approval.Namespace, "-f", path, file)
			theirs, err := os.ReadFile(file + ".sig")
			if err != nil {
				t.Fatal(err)
			}
			if _, who, err := approval.Verify([]approval.Approver{ann}, text, theirs); err != nil || who.Name != ann.Name {
				t.Errorf("theirs: %v", err)
			}
			if err := os.WriteFile(file+".sig", sign(t, signer, text), 0o600); err != nil {
				t.Fatal(err)
			}
			allowed := filepath.Join(t.TempDir(), "allowed_signers")
			if err := os.WriteFile(allowed, []byte(ann.Line()+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			out := run(t, text, keygen, "-Y", "verify", "-f", allowed, "-I", ann.Name, "-n", approval.Namespace, "-s", file+".sig")
			if !strings.Contains(out, "Good \""+approval.Namespace+"\" signature") {
				t.Errorf("ours: %s", out)
			}

			// A signature for another purpose is one only for that.
			if err := os.Remove(file + ".sig"); err != nil {
				t.Fatal(err)
			}
			run(t, nil, keygen, "-Y", "sign", "-n", "file", "-f", path, file)
			if theirs, err = os.ReadFile(file + ".sig"); err != nil {
				t.Fatal(err)
			}
			if _, _, err := approval.Verify([]approval.Approver{ann}, text, theirs); approval.ReasonOf(err) != approval.WrongNamespace {
				t.Errorf("another purpose: %v", err)
			}
		})
	}
}

func run(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(string(stdin))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return string(out)
}

// An ssh-agent signs as the key itself does.
func TestSSHAgent(t *testing.T) {
	keys := agent.NewKeyring()
	for _, kind := range []string{"ed25519", "rsa", "ecdsa"} {
		private := any(newKey(t, kind))
		if p, ok := private.(ed25519.PrivateKey); ok {
			private = &p
		}
		if err := keys.Add(agent.AddedKey{PrivateKey: private}); err != nil {
			t.Fatal(err)
		}
	}
	signers, err := keys.Signers()
	if err != nil {
		t.Fatal(err)
	}
	text := encode(t, statement())
	for _, signer := range signers {
		if _, _, err := approval.Verify([]approval.Approver{{Name: "ann", Key: signer.PublicKey()}}, text, sign(t, signer, text)); err != nil {
			t.Errorf("%s: %v", signer.PublicKey().Type(), err)
		}
	}
}

// A reason has a bound of its own, since it is a person's text.
func TestReasonIsBounded(t *testing.T) {
	s := statement()
	for n, fits := range map[int]bool{2048: true, 2049: false} {
		s.Reason = strings.Repeat("\x01", n)
		if _, err := approval.Parse(encode(t, s)); fits != (err == nil) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for r := approval.Unsigned; r <= approval.Expired; r++ {
		text, err := r.MarshalText()
		if err != nil || seen[string(text)] || strings.HasPrefix(string(text), "reason(") {
			t.Errorf("%d is %q, %v", r, text, err)
		}
		seen[string(text)] = true
	}
	if (approval.Expired+1).String() != "reason(10)" || approval.ReasonOf(os.ErrExist) != 0 {
		t.Error("there are more reasons than those")
	}
}

// What Parse accepts has one form only, and that form is what was read.
func FuzzParse(f *testing.F) {
	f.Add(encode(f, statement()))
	f.Add([]byte(`{"decision":"deny"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := approval.Parse(text)
		if err != nil {
			if approval.ReasonOf(err) != approval.MalformedStatement {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		if again, err := s.Encode(); err != nil || string(again) != string(text) {
			t.Errorf("%q is read, and written as %q, %v", text, again, err)
		}
	})
}

// A signature that can be read can be verified without a panic.
func FuzzParseSignature(f *testing.F) {
	for _, kind := range []string{"ed25519", "rsa", "ecdsa"} {
		f.Add(sign(f, signerOf(f, kind), []byte("text")))
	}
	f.Fuzz(func(t *testing.T, armored []byte) {
		s, err := approval.ParseSignature(armored)
		if err != nil {
			if approval.ReasonOf(err) != approval.MalformedSignature {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		if s.Verify([]byte("another text")) == nil {
			t.Error("a signature of another text was verified")
		}
	})
}

// The inner parts, which the armor hides from a fuzzer.
func FuzzSignatureBytes(f *testing.F) {
	block, _ := pem.Decode(sign(f, signerOf(f, "ed25519"), []byte("text")))
	f.Add(block.Bytes)
	f.Fuzz(func(t *testing.T, inner []byte) {
		s, err := approval.ParseSignature(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: inner}))
		if err == nil && s.Verify([]byte("another text")) == nil {
			t.Error("a signature of another text was verified")
		}
	})
}

func Example() {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	signer, _ := ssh.NewSignerFromSigner(private)
	approvers := []approval.Approver{{Name: "ann", Key: signer.PublicKey()}}

	payload := []byte(`{"cents":4711}`)
	s := approval.Statement{
		ApprovalID: "019aa8f4", Nonce: "4c8ba1f0", AskedBy: "agent://caller", Caller: "agent://caller", Callee: "agent://bank",
		Capability: "pay", CorrelationID: "c-1", PayloadSHA256: envelope.DigestPayload(payload).String(),
		Expires: time.Date(2026, 11, 22, 8, 30, 0, 0, time.UTC), Decision: approval.Approve,
	}
	text, _ := s.Encode()
	signature, _ := approval.Sign(signer, text)

	decided, who, err := approval.Verify(approvers, text, signature)
	fmt.Println(decided.Decision, who.Name, err)
	decided.Capability = "refund"
	altered, _ := decided.Encode()
	_, _, err = approval.Verify(approvers, altered, signature)
	fmt.Println(approval.ReasonOf(err))
	// Output:
	// approve ann <nil>
	// bad-signature
}
