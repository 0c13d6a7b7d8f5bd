package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// publishKeys makes keys for agents and puts them into identities.yaml.
func publishKeys(t *testing.T, cfg daemon.Config, agents ...string) {
	t.Helper()
	var all []fleet.Identity
	for _, id := range agents {
		keys, err := identity.Store{Path: cfg.Paths.Identity(id)}.Ensure(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fleet.Identity{Agent: envelope.AddressOf(id), Auth: &fleet.PeerAuth{
			Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keys[0].Public}},
		}})
	}
	if err := fleet.WriteIdentities(cfg.Fleet.Root, all); err != nil {
		t.Fatal(err)
	}
}

// Where proof is a must, calls fail at the end that lacks the identity, and
// succeed once both have read each other's.
func TestRequireAuth(t *testing.T) {
	all := files()
	all["callee/agent.yaml"] += "security: {requireAuth: true}\n"
	all["caller/agent.yaml"] += "security: {requireAuth: true}\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	if _, err := goCall(t, f); rpc.CodeOf(err) != rpc.CodeAuthFailed {
		t.Errorf("without identities: %v", err)
	}
	publishKeys(t, cfg, "caller", "callee")
	for _, id := range []string{"caller", "callee"} {
		d, _ := f.Daemon(id)
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := goCall(t, f); err != nil {
		t.Errorf("with identities: %v", err)
	}
	// Broken keys leave the good ones in force.
	path := filepath.Join(cfg.Fleet.Root, fleet.IdentitiesName)
	bad := "version: 1\nidentities: [{agent: agent://caller, auth: {provider: hmac, keyId: k, secretRef: env:AGENTD_TEST_UNSET}}]\n"
	if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	d, _ := f.Daemon("callee")
	if err := d.Reload(); err == nil || !strings.Contains(err.Error(), "AGENTD_TEST_UNSET is not set") {
		t.Errorf("reload: %v", err)
	}
	if _, err := goCall(t, f); err != nil {
		t.Errorf("after a bad reload: %v", err)
	}
}

// A callee that expects a proof records who came without, and no key.
func TestRefusedProofIsRecorded(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	publishKeys(t, cfg, "caller")
	d, _ := f.Daemon("callee") // the caller has not read that it is known
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	caller, _ := f.Daemon("caller")
	result, _ := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: []byte(`{"n":1}`), Timeout: 50 * time.Millisecond})
	if result.Status != rpc.StatusTimeout {
		t.Errorf("an unproven request was answered: %+v", result)
	}
	got := ofKind(t, cfg, "callee", auditchain.KindAuthCheck)
	if len(got) == 0 {
		t.Fatal("no record")
	}
	want := map[string]any{"role": "callee", "peerId": "agent://caller", "provider": "nkey", "decision": "reject", "reason": "missing-auth"}
	for key, value := range want {
		if fmt.Sprint(got[0][key]) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v", key, got[0][key], value)
		}
	}
}

func TestIdentityThatCannotBeChecked(t *testing.T) {
	for _, auth := range []string{
		"{provider: oidc, issuer: i, audience: a}", "{provider: oauth2-client, tokenEndpoint: t, clientId: c, clientSecretRef: env:X}",
		"{provider: hmac, keyId: k, secretRef: env:AGENTD_TEST_UNSET}", "{provider: hmac, keyId: k, secretRef: clear}",
	} {
		all := files()
		all["identities.yaml"] = "version: 1\nidentities: [{agent: agent://caller, auth: " + auth + "}]\n"
		cfg := load(t, all)
		cfg.Handlers = handle(echo)
		f, err := daemon.StartFleet(t.Context(), cfg)
		if err == nil {
			stop(t, f)
			t.Fatalf("%s: started", auth)
		}
		if !strings.Contains(err.Error(), "identities.yaml:2: the identity of agent://caller") {
			t.Errorf("%s: %v", auth, err)
		}
	}
}

// Whoever sees a request on the broker can write the server's own "no responders" to
// its reply subject. That ends no call to a peer with an identity.
func TestForgedNoResponders(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	cfg := load(t, natsFiles(server.URL()))
	release := make(chan struct{})
	cfg.Handlers = handle(echoAfter(release))
	publishKeys(t, cfg, "callee", "caller")
	cfg = reread(t, cfg)
	startAgent(t, cfg, "callee")
	caller := startAgent(t, cfg, "caller")
	forger := natsConn(t, server.URL()).Client()
	forged := make(chan string, 99)
	if _, err := forger.Subscribe("agents.callee.>", func(m *natsgo.Msg) {
		if m.Reply == "" {
			return
		}
		answer := &natsgo.Msg{Subject: m.Reply, Header: natsgo.Header{"Status": {"503"}}}
		if err := forger.PublishMsg(answer); err != nil {
			t.Error(err)
		}
		forged <- m.Subject
	}); err != nil {
		t.Fatal(err)
	}
	if err := forger.Flush(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- callGo(t, caller, `{"n":1}`) }()
	// The gate's question, the call, and the question that the doubt raises.
	for subject, again := "", 0; again < 1; {
		if subject == "agents.callee.requests" {
			again++
		}
		select {
		case subject = <-forged:
		case err := <-done:
			t.Fatalf("the call ended: %v", err)
		}
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the call: %v", err)
	}
}
