package daemon_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// listed is security.approvers with keys.
func listed(people map[string]ssh.Signer) string {
	text := "  approvers:\n"
	for name, s := range people {
		text += "    - {name: " + name + ", key: " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey()))) + "}\n"
	}
	return text
}

// startSigned runs a fleet whose caller asks, or whose callee does, and takes signatures of
// people.
func startSigned(t *testing.T, asks string, people map[string]ssh.Signer) (cfg daemon.Config, f *daemon.Fleet, c *control.Client, end func()) {
	t.Helper()
	all := files()
	tool := map[string]string{"caller": "RequestAgent", "callee": "ServeAgent"}[asks]
	all[asks+"/agent.yaml"] += "permissions: {ask: ['" + tool + ":**']}\nsecurity:\n" + listed(people)
	cfg = load(t, all)
	cfg.Handlers = handle(echo)
	f = startFleet(t, cfg)
	end = sync.OnceFunc(func() { stop(t, f) })
	t.Cleanup(end)
	d, _ := f.Daemon(asks)
	c = control.NewClient(d.Socket())
	t.Cleanup(c.Close)
	return cfg, f, c, end
}

// signed is a signature about a call that waits.
func signed(t *testing.T, by ssh.Signer, call *control.Approval, d approval.Decision, change func(*approval.Statement)) control.Decision {
	t.Helper()
	s := call.Statement(d, "ticket 17")
	if change != nil {
		change(&s)
	}
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := approval.Sign(by, text)
	if err != nil {
		t.Fatal(err)
	}
	return control.Decision{Statement: text, Signature: signature}
}

func wantRefused(t *testing.T, name string, err error, reason approval.Reason) {
	t.Helper()
	refused, ok := errors.AsType[*control.RefusedError](err)
	if !ok || refused.HTTPStatus != 403 || refused.Code != "approval-"+reason.String() {
		t.Errorf("%s: %v, want %s", name, err, reason)
	}
}

// A signed decision is recorded such that anybody with the list of people can verify it,
// and with the digest that both ends record of the call.
func TestSignedDecisions(t *testing.T) {
	for _, asks := range []string{"caller", "callee"} {
		t.Run(asks, func(t *testing.T) {
			ann := newSigner(t)
			cfg, f, c, end := startSigned(t, asks, map[string]ssh.Signer{"ann": ann})
			for _, decision := range []approval.Decision{approval.Approve, approval.Deny} {
				done := make(chan error, 1)
				go func() { _, err := goCall(t, f); done <- err }()
				call := waiting(t, c, 1)[0]
				if string(call.Role) != asks || call.Caller != "agent://caller" || call.Callee != "agent://callee" || len(call.Signers) != 1 || call.Signers[0].Name != "ann" {
					t.Errorf("it waits as %+v", call)
				}
				if err := c.Decide(t.Context(), call.ID, signed(t, ann, &call, decision, nil)); err != nil {
					t.Error(err)
				}
				err := <-done
				switch got, _ := errors.AsType[*rpc.Error](err); {
				case decision == approval.Approve && err != nil:
					t.Error(err)
				case decision == approval.Deny && (got == nil || got.Code != rpc.CodeDenied || got.DetectedBy != envelope.AddressFor(asks) || !strings.Contains(got.Message, "ticket 17")):
					t.Errorf("denied: %+v", got)
				}
			}
			digest := envelope.DigestPayload([]byte(`{"n":1}`)).String()
			records := ofKind(t, cfg, asks, auditchain.KindApproval)
			if len(records) != 2 {
				t.Fatalf("records %v", records)
			}
			for i, decision := range []approval.Decision{approval.Approve, approval.Deny} {
				r := records[i]
				s, who, err := approval.Verify([]approval.Approver{{Name: "ann", Key: ann.PublicKey()}}, []byte(r["statement"].(string)), []byte(r["signature"].(string)))
				if err != nil || who.Name != r["signer"] || who.Fingerprint() != r["signerKey"] || s.Decision != decision || r["decision"] != string(decision) || r["reason"] != "ticket 17" ||
					s.PayloadSHA256 != digest || r["payloadSha256"] != digest || s.AskedBy != envelope.AddressFor(asks) || r["role"] != asks {
					t.Errorf("%v: %v", err, r)
				}
			}
			end() // writes the access records
			for _, role := range []string{"caller", "callee"} {
				if calls := ofKind(t, cfg, role, auditchain.KindRPCCall); len(calls) == 0 || calls[0]["payloadSha256"] != digest {
					t.Errorf("the %s records %v", role, calls)
				}
			}
		})
	}
}

// What is not an approver's signature about this very wait is refused with its reason and
// recorded, and the call waits on.
func TestRefusedDecisions(t *testing.T) {
	ann, bob := newSigner(t), newSigner(t)
	cfg, f, c, _ := startSigned(t, "caller", map[string]ssh.Signer{"ann": ann, "bob": bob})
	d, _ := f.Daemon("caller")
	done := make(chan error, 1)
	go func() { _, err := goCall(t, f); done <- err }()
	call := waiting(t, c, 1)[0]
	begun := time.Now()
	used := signed(t, ann, &call, approval.Approve, nil)
	altered := signed(t, ann, &call, approval.Deny, nil)
	altered.Statement = used.Statement
	refusals := 0
	for name, test := range map[string]struct {
		decision control.Decision
		want     approval.Reason
	}{
		"unsigned":           {control.Decision{Approve: true}, approval.Unsigned},
		"an unsigned denial": {control.Decision{Reason: "no"}, approval.Unsigned},
		"a stranger":         {signed(t, newSigner(t), &call, approval.Approve, nil), approval.UnknownSigner},
		"another decision":   {altered, approval.BadSignature},
		"no statement":       {control.Decision{Statement: []byte("{}"), Signature: used.Signature}, approval.MalformedStatement},
		"another payload":    {signed(t, ann, &call, approval.Approve, func(s *approval.Statement) { s.PayloadSHA256 = strings.Repeat("0", 64) }), approval.OtherCall},
		"another capability": {signed(t, ann, &call, approval.Approve, func(s *approval.Statement) { s.Capability = "stop" }), approval.OtherCall},
		"another caller":     {signed(t, ann, &call, approval.Approve, func(s *approval.Statement) { s.Caller = "agent://x" }), approval.OtherCall},
		"another callee":     {signed(t, ann, &call, approval.Approve, func(s *approval.Statement) { s.Callee = "agent://x" }), approval.OtherCall},
		"another wait":       {signed(t, ann, &call, approval.Approve, func(s *approval.Statement) { s.Nonce = "x" }), approval.OtherCall},
		"a longer time":      {signed(t, ann, &call, approval.Approve, func(s *approval.Statement) { s.Expires = s.Expires.Add(time.Hour) }), approval.OtherCall},
		"an earlier time":    {signed(t, ann, &call, approval.Approve, func(s *approval.Statement) { s.Expires = time.Now().Add(-time.Second) }), approval.Expired},
	} {
		wantRefused(t, name, c.Decide(t.Context(), call.ID, test.decision), test.want)
		refusals++
	}
	// A reload takes ann off the list, for the call that waits already, too.
	path := filepath.Join(cfg.Fleet.Root, "caller", "agent.yaml")
	text := "name: caller\npermissions: {ask: ['RequestAgent:**']}\nsecurity:\n" + listed(map[string]ssh.Signer{"bob": bob})
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "a former approver", c.Decide(t.Context(), call.ID, used), approval.UnknownSigner)
	refusals++
	waiting(t, c, 1)
	if err := c.Decide(t.Context(), call.ID, signed(t, bob, &call, approval.Approve, nil)); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	// The same signature again decides nothing, neither this call nor the next like it.
	again := signed(t, bob, &call, approval.Approve, nil)
	if err := c.Decide(t.Context(), "019aa8f4", control.Decision{Approve: true}); !errors.As(err, new(*control.NoApprovalError)) {
		t.Errorf("an unsigned decision about nothing: %v", err) // and no record: see the count below
	}
	if err := c.Decide(t.Context(), call.ID, again); !errors.As(err, new(*control.NoApprovalError)) {
		t.Errorf("a replay: %v", err)
	}
	refusals++
	go func() { _, err := goCall(t, f); done <- err }()
	next := waiting(t, c, 1)[0]
	wantRefused(t, "a replay for the next call", c.Decide(t.Context(), next.ID, again), approval.OtherCall)
	refusals++
	// A flood of refusals is no flood of records: the next one counts those without one.
	for counted := 0; counted != refusals; counted = accounted(t, cfg) {
		wantRefused(t, "unsigned", c.Decide(t.Context(), next.ID, control.Decision{}), approval.Unsigned)
		refusals++
	}
	if err := c.Decide(t.Context(), next.ID, signed(t, bob, &next, approval.Deny, nil)); err != nil {
		t.Error(err)
	}
	if err := <-done; rpc.CodeOf(err) != rpc.CodeDenied {
		t.Error(err)
	}
	records := ofKind(t, cfg, "caller", auditchain.KindApproval)
	if most := sampled(time.Since(begun)); len(records)-2 > most {
		t.Errorf("%d records of %d refusals, want at most %d", len(records)-2, refusals, most)
	}
	decisions := 0
	for _, r := range records {
		if r["decision"] != "refused" {
			decisions++
		} else if r["refusal"] == "" || r["approver"] == "" || r["reason"] == "" || (r["signature"] != nil) != (r["signer"] != nil) {
			t.Errorf("a refusal without a reason: %v", r)
		}
	}
	if decisions != 2 {
		t.Errorf("%d decisions", decisions)
	}
}

// sampled is how many records there may be, at most, of what is sampled.
func sampled(during time.Duration) int {
	const perSecond = 5
	return perSecond + 1 + int(during.Seconds()*perSecond)
}

// accounted is how many refusals the caller's records speak of.
func accounted(t *testing.T, cfg daemon.Config) (n int) {
	t.Helper()
	for _, r := range ofKind(t, cfg, "caller", auditchain.KindApproval) {
		if r["decision"] == "refused" {
			more, _ := r["unrecorded"].(float64)
			n += 1 + int(more)
		}
	}
	return n
}

// A caller that asks over and over takes the room of nobody else, and not a record each.
func TestOneCallerCannotFillTheTable(t *testing.T) {
	const most = 64
	all := files()
	all["callee/agent.yaml"] += "permissions: {ask: ['ServeAgent:agent://caller/go']}\n"
	all["caller/agent.yaml"] += "permissions: {ask: ['RequestAgent:agent://callee/other'], allow: ['RequestAgent:**']}\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	t.Cleanup(func() { stop(t, f) })
	d, _ := f.Daemon("callee")
	c := control.NewClient(d.Socket())
	t.Cleanup(c.Close)
	ended := make(chan error, most+20)
	for range most {
		go func() { _, err := goCall(t, f); ended <- err }()
	}
	calls := waiting(t, c, most)
	begun := time.Now()
	for range 20 {
		if _, err := goCall(t, f); rpc.CodeOf(err) != rpc.CodeDenied {
			t.Fatalf("one more: %v", err) // each of these would wait until its time is over
		}
	}
	for _, call := range calls {
		if err := c.Decide(t.Context(), call.ID, control.Decision{Approve: true}); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	n := map[any]int{}
	for _, r := range ofKind(t, cfg, "callee", auditchain.KindApproval) {
		n[r["decision"]]++
	}
	if n["approve"] != most || n["overflow"] == 0 || n["overflow"] > sampled(time.Since(begun)) {
		t.Errorf("recorded %v", n)
	}
}

// The exact bytes of a payload reach the person who is to sign their digest.
func TestPayloadKeepsItsBytes(t *testing.T) {
	_, f, c := startAsking(t, "60000")
	d, _ := f.Daemon("caller")
	payload := json.RawMessage("{ \"n\": 1,\n \"t\": \"<&\u2028>\" }")
	done := make(chan error, 1)
	go func() {
		_, err := d.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: payload})
		done <- err
	}()
	waiting(t, c, 1)
	all, err := c.Approvals(t.Context(), true)
	if err != nil || string(all[0].PayloadBytes()) != string(payload) || envelope.DigestPayload(payload).String() != all[0].PayloadSHA256 {
		t.Errorf("%v: %+v", err, all)
	}
	if err := c.Decide(t.Context(), all[0].ID, control.Decision{}); err != nil {
		t.Error(err)
	}
	<-done
}
