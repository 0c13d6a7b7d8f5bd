package daemon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
)

// Once any agent has an identity, one without may name no tenant: it could take the name
// of whom it likes. Calls without a tenant go on.
func TestTenantNeedsAProof(t *testing.T) {
	all := files()
	all["callee/agent.yaml"] += "tenants: [default, acme]\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	callOf := func(tenant string) error {
		_, err := caller.Client().RequestAgent(t.Context(), rpc.Request{
			To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), TenantID: tenant,
		})
		return err
	}
	reload := func(id string) {
		d, _ := f.Daemon(id)
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if err := callOf("acme"); err != nil {
		t.Errorf("without identities: %v", err)
	}
	publishKeys(t, cfg, "somebody")
	reload("callee")
	if err := callOf("acme"); rpc.CodeOf(err) != rpc.CodeTenantMismatch || !strings.Contains(err.Error(), "does not prove who it is") {
		t.Errorf("without a proof: %v", err)
	}
	if err := callOf(""); err != nil {
		t.Errorf("without a tenant: %v", err)
	}
	publishKeys(t, cfg, "somebody", "caller", "callee")
	reload("caller")
	reload("callee")
	if err := callOf("acme"); err != nil {
		t.Errorf("with a proof: %v", err)
	}
	if err := callOf("beta"); rpc.CodeOf(err) != rpc.CodeTenantMismatch {
		t.Errorf("a tenant that is not served: %v", err)
	}
}
