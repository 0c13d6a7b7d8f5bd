package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// approvalLine is the record of a signed approval, as `audit query -o jsonl` prints it.
func approvalLine(t *testing.T, signer ssh.Signer, role string, change func(map[string]any)) string {
	t.Helper()
	at := time.Date(2026, 11, 22, 8, 30, 0, 0, time.UTC)
	s := approval.Statement{
		ApprovalID: "a-1", Nonce: "n", AskedBy: "agent://desk", Caller: "agent://desk", Callee: "agent://bank", Capability: "pay",
		CorrelationID: "c-1", Tenant: "acme", PayloadSHA256: "5b1b", Expires: at, Decision: approval.Approve, Reason: "ticket 17",
	}
	peer := "agent://bank"
	if role == "callee" {
		s.AskedBy, peer = "agent://bank", "agent://desk"
	}
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := approval.Sign(signer, text)
	if err != nil {
		t.Fatal(err)
	}
	record := map[string]any{
		"agent": "desk", "seq": 7, "kind": "approval", "ts": at.UnixMilli(), "tenantId": "acme", "approvalId": "a-1", "role": role, "peerId": peer,
		"capabilityName": "pay", "correlationId": "c-1", "payloadSha256": "5b1b", "decision": "approve", "reason": "ticket 17",
		"statement": string(text), "signature": string(signature),
	}
	if change != nil {
		change(record)
	}
	line, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

// A record counts only where it says what its signed statement says, by a person on the
// list, in time.
func TestVerifyApprovals(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	env := clitest.New(t, "")
	allowed := env.Write(t, "allowed", "# people\n\nann@example.org namespaces=\"agentd-approval@v1\" "+line+" a comment\n")
	authorized := env.Write(t, "authorized", line+" ann@laptop\n")
	const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBFMY2xGEe6zTPc4MPSBCUlIK8/kKjCDZVhdbRUtzfVp"
	strangers := env.Write(t, "strangers", "bob "+other+"\n")
	git := env.Write(t, "git", `ann@example.org namespaces="git,file" `+line+"\n"+`ann@example.org namespaces="*,!agentd-*" `+line+"\n")
	set := func(name string, value any) func(map[string]any) {
		return func(r map[string]any) { r[name] = value }
	}
	for _, test := range []struct {
		name, approvers, role string
		change                func(map[string]any)
		says                  string // "" for a good one
	}{
		{"the caller's", allowed, "caller", nil, ""},
		{"the callee's", allowed, "callee", nil, ""},
		{"a pattern", env.Write(t, "pattern", `ann@example.org namespaces="git,agentd-approval@*" `+line+"\n"), "caller", nil, ""},
		{"an authorized_keys file", authorized, "caller", nil, ""},
		{"a stranger's", strangers, "caller", nil, "is no approver's"},
		{"unsigned", allowed, "caller", func(r map[string]any) { delete(r, "statement"); delete(r, "signature") }, "not signed"},
		{"another id", allowed, "caller", set("approvalId", "a-2"), "approvalId"},
		{"another end", allowed, "caller", set("role", "callee"), "asked"},
		{"another asker", allowed, "caller", func(r map[string]any) {
			var callee map[string]any
			if err := json.Unmarshal([]byte(approvalLine(t, signer, "callee", nil)), &callee); err != nil {
				t.Fatal(err)
			}
			r["statement"], r["signature"] = callee["statement"], callee["signature"] // about the same call
		}, "asked"},
		{"a list of git's signers", git, "caller", nil, "is no approver's"},
		{"another peer", allowed, "caller", set("peerId", "agent://x"), "peerId"},
		{"another capability", allowed, "caller", set("capabilityName", "refund"), "capabilityName"},
		{"another call", allowed, "caller", set("correlationId", "c-2"), "correlationId"},
		{"another tenant", allowed, "caller", set("tenantId", "beta"), "tenantId"},
		{"another payload", allowed, "caller", set("payloadSha256", "5b1c"), "payloadSha256"},
		{"another decision", allowed, "caller", set("decision", "deny"), "decision"},
		{"another reason", allowed, "caller", set("reason", ""), "reason"},
		{"too late", allowed, "caller", set("ts", time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC).UnixMilli()), "expired at"},
	} {
		file := env.Write(t, "records", `{"kind":"rpc_call","seq":6}`+"\n"+approvalLine(t, signer, test.role, test.change))
		env.Reset()
		env.Format = output.JSONL
		err := VerifyApprovals(&env.Env, file, []string{test.approvers})
		var got checkedApproval
		if jerr := json.Unmarshal([]byte(env.Out.String()), &got); jerr != nil || got.Seq != 7 {
			t.Fatalf("%s: %v in %s", test.name, jerr, env.Out)
		}
		switch good := test.says == ""; {
		case good != got.OK, good != (err == nil), !good && clitest.Code(err) != cli.ExitFinding, !strings.Contains(got.Error, test.says):
			t.Errorf("%s: %v, %+v", test.name, err, got)
		case good && (!strings.HasPrefix(got.Signer, "ann@") || !strings.HasPrefix(got.Key, "SHA256:")):
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	// A JSON array, on standard input, and as a table.
	env.Reset()
	env.Format = output.Table
	env.Stdin = strings.NewReader(fmt.Sprintf("[%s]", approvalLine(t, signer, "caller", nil)))
	if err := VerifyApprovals(&env.Env, "-", []string{strangers, allowed}); err != nil || !strings.Contains(env.Out.String(), "signed by ann@example.org SHA256:") {
		t.Errorf("%v: %s", err, env.Out)
	}
	// What was erased, or was never decided, is no finding.
	env.Reset()
	none := env.Write(t, "none", `{"kind":"approval","seq":1,"erasedBy":9}`+"\n"+`{"kind":"approval","seq":2,"decision":"expire"}`+"\n")
	if err := VerifyApprovals(&env.Env, none, []string{allowed}); err != nil || !strings.Contains(env.Err.String(), "no decisions") {
		t.Errorf("%v: %s", err, env.Err)
	}
	for _, option := range []string{"cert-authority", `valid-before="20200101"`, `valid-after="20300101Z",namespaces="agentd-approval@v1"`} {
		list := env.Write(t, "bounded", "ann@example.org "+option+" "+line+"\n")
		if err := VerifyApprovals(&env.Env, none, []string{list}); err == nil || clitest.Code(err) == cli.ExitFinding || !strings.Contains(err.Error(), "bounded:1: the option "+option[:10]) {
			t.Errorf("%s: %v", option, err)
		}
	}
	for name, args := range map[string][2]string{
		"no list": {none, env.Dir + "/nowhere"}, "no records": {env.Dir + "/nowhere", allowed}, "a list of nothing": {none, none}, "records of nothing": {allowed, allowed},
	} {
		if err := VerifyApprovals(&env.Env, args[0], []string{args[1]}); err == nil || clitest.Code(err) == cli.ExitFinding {
			t.Errorf("%s: %v", name, err)
		}
	}
}
