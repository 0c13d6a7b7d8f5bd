package fleet_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

func TestControl(t *testing.T) {
	f := starter().with(files{"agents/pr-reviewer/agent.yaml": `name: pr-reviewer
control:
  listen: 0.0.0.0:7420
  tls: {cert: /etc/tls/c.pem, key: /etc/tls/k.pem}
  hosts: [agents.example.com]
  maxPending: 8
  clients:
    - {name: nightly, token: "file:/run/secrets/nightly", tenants: [default, acme], rateLimit: {requests: 10, period: 1m}, maxPending: 2}
    - {name: desk, token: "env:DESK"}
permissions:
  allow: ["CLIENT:nightly/agent://librarian/*", "MCP:*/agent://librarian/*"]
  ask: ["CLIENT:*/agent://librarian/purge"]
  deny: ["CLIENT:desk/**"]
`}).load(t)
	m, _ := f.Member("pr-reviewer")
	got := m.Agent.Control
	if got.Listen != "0.0.0.0:7420" || got.MaxPending != 8 || !slices.Equal(got.Hosts, []string{"agents.example.com"}) || got.TLS.Cert != "/etc/tls/c.pem" || len(got.Clients) != 2 {
		t.Errorf("control %+v", got)
	}
	if c, ok := got.Client("nightly"); !ok || c.Token != "file:/run/secrets/nightly" || c.MaxPending != 2 || c.RateLimit.Requests != 10 || !slices.Equal(c.Tenants, []string{"default", "acme"}) {
		t.Errorf("client %+v", c)
	}
	for _, path := range []string{"/etc/tls/c.pem", "/etc/tls/k.pem", "/run/secrets/nightly"} {
		if !slices.Contains(f.Files(m), path) {
			t.Errorf("%s is not watched", path)
		}
	}
	if secret := got.SecretFiles(); !slices.Equal(secret, []string{"/run/secrets/nightly", "/etc/tls/k.pem"}) {
		t.Errorf("secret files %q", secret)
	}
	p := m.Agent.Permissions
	if p.Calls() || len(p.Control.Allow) != 1 || len(p.Control.Ask) != 1 || len(p.Control.Deny) != 1 || len(p.Clients.Allow) != 1 || p.Clients.Ask != nil {
		t.Errorf("permissions %+v", p)
	}
	a, err := agentWith(t, "")
	if want := (fleet.Control{MaxPending: 64}); err != nil || !reflect.DeepEqual(a.Control, want) {
		t.Errorf("by default %+v, %v", a.Control, err)
	}
}

func TestFaultyControl(t *testing.T) {
	const clients = "clients: [{name: a, token: 'env:A'}]"
	for _, tt := range []struct{ text, pointer, says string }{
		{"control: {lissten: 127.0.0.1:1}", "/control/lissten", `did you mean "listen"`},
		{"control: {listen: 127.0.0.1:1}", "/control/listen", "no client could prove who it is"},
		{"control: {listen: 0.0.0.0:1, " + clients + "}", "/control/listen", "in the clear"},
		{"control: {listen: 0.0.0.0:1, tls: {cert: c, key: k}, " + clients + "}", "/control/listen", "has to know its names"},
		{"control: {auth: none, listen: 127.0.0.1:1, " + clients + "}", "/control/auth", "unknown key"},
		{"control: {origins: ['https://x'], " + clients + "}", "/control/origins", "unknown key"},
		{"control: {clients: [{name: a}]}", "/control/clients/0", `"token" is missing`},
		{"control: {clients: [{name: a, token: s3cr3t}]}", "/control/clients/0/token", "not a reference to a secret"},
		{"control: {clients: [{name: A, token: 'env:A'}]}", "/control/clients/0/name", "cannot name a client"},
		{"control: {clients: [{name: a, token: 'env:A'}, {name: b, token: 'env:A'}]}", "/control/clients/1/token", `of the client "a" already`},
		{"control: {clients: [{name: a, token: 'env:A', tenants: [Acme]}]}", "/control/clients/0/tenants/0", "Acme"},
		{"control: {" + clients + "}\npermissions: {deny: ['CLIENT:a/librarian/x']}", "/permissions/deny/0", "CLIENT:<client>/agent://<id>/<capability>"},
		{"permissions: {ask: ['client:a/agent://librarian/x']}", "/permissions/ask/0", "written CLIENT:"},
		{"permissions: {allow: ['CLIENT:a/agent://librarian/x']}", "/permissions/allow/0", `control.clients has no client "a"`},
		{"control: {" + clients + "}\npermissions: {allow: ['CLIENT:aa/**']}", "/permissions/allow/0", `did you mean "a"`},
	} {
		_, err := agentWith(t, tt.text)
		var le *fleet.LoadError
		if !errors.As(err, &le) || len(le.Faults) != 1 || le.Faults[0].Pointer != tt.pointer ||
			!strings.Contains(le.Faults[0].Message+le.Faults[0].Hint, tt.says) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
}
