package fleet_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
)

func TestMCP(t *testing.T) {
	root := starter().with(files{"agents/pr-reviewer/agent.yaml": `name: pr-reviewer
mcp:
  listen: 0.0.0.0:7411
  names: bare
  profile: openai-strict
  requestAgent: true
  maxPending: 9
  hosts: [mcp.example.com]
  origins: ["https://inspector.example.com"]
  tls: {cert: keys/mcp.pem, key: /run/secrets/mcp.key}
  oauth: {issuer: "https://login.example.com", resource: "https://mcp.example.com/mcp", scopes: [tools]}
  clients:
    - {name: claude-code, token: "file:/run/secrets/claude", rateLimit: {requests: 60, period: 1m}, maxPending: 2}
    - {name: cursor, token: "env:CURSOR_TOKEN"}
    - {name: ci, subject: build@example.com}
permissions:
  allow: ["MCP:cursor/agent://librarian/*", "MCP:*/agent://librarian/*", "MCP:**"]
  ask: ["MCP:ci/**"]
  deny: ["MCP:claude-*/agent://librarian/delete"]
`}).root(t)
	f, err := fleet.Load(root, plugged())
	if err != nil {
		t.Fatal(err)
	}
	member, _ := f.Member("pr-reviewer")
	got := member.Agent.MCP
	for i := range got.Clients {
		got.Clients[i].Position = fleet.Position{}
	}
	want := fleet.MCP{
		Listen: "0.0.0.0:7411", Bare: true, Profile: "openai-strict", RequestAgent: true, MaxPending: 9,
		Hosts: []string{"mcp.example.com"}, Origins: []string{"https://inspector.example.com"},
		TLS:   &fleet.MCPTLS{Cert: filepath.Join(f.Root, "keys", "mcp.pem"), Key: "/run/secrets/mcp.key"},
		OAuth: &fleet.MCPOAuth{Issuer: "https://login.example.com", Resource: "https://mcp.example.com/mcp", Scopes: []string{"tools"}},
		Clients: []fleet.MCPClient{
			{Name: "claude-code", Token: "file:/run/secrets/claude", RateLimit: &capability.RateLimit{Requests: 60, Period: time.Minute, Burst: 60}, MaxPending: 2},
			{Name: "cursor", Token: "env:CURSOR_TOKEN"},
			{Name: "ci", Subject: "build@example.com"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	// A renewed certificate or token is noticed like any other change.
	for _, path := range []string{want.TLS.Cert, want.TLS.Key, "/run/secrets/claude"} {
		if !slices.Contains(f.Files(member), path) {
			t.Errorf("%s is not watched", path)
		}
	}
	p := member.Agent.Permissions
	if p.Calls() || len(p.Clients.Allow) != 3 || len(p.Clients.Ask) != 1 || len(p.Clients.Deny) != 1 || p.Allow != nil || p.Ask != nil || p.Deny != nil {
		t.Errorf("permissions %+v", p)
	}
	if c, ok := got.Client("cursor"); !ok || c.Name != "cursor" {
		t.Errorf("client %+v", c)
	}
}

// Who says nothing gets no server, and the reference runtime's forms of the key mean
// nothing here.
func TestMCPDefaults(t *testing.T) {
	for text, ignored := range map[string]string{
		"": "", "mcp: {}": "", "mcp: {supervised: all}": "mcp.supervised", "mcp: [./servers.json]": "mcp",
	} {
		a, err := agentWith(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if want := (fleet.MCP{MaxPending: 64}); !reflect.DeepEqual(a.MCP, want) {
			t.Errorf("%s: %+v", text, a.MCP)
		}
		if ignored == "" && a.Ignored != nil || ignored != "" && (len(a.Ignored) != 1 || a.Ignored[0].Key != ignored) {
			t.Errorf("%s: ignored %+v", text, a.Ignored)
		}
	}
}

func TestFaultyMCP(t *testing.T) {
	const tokens = "clients: [{name: a, token: 'env:A'}]"
	for _, tt := range []struct{ block, pointer, says string }{
		{"lissten: 127.0.0.1:1", "/lissten", `did you mean "listen"`},
		{"listen: '7411', auth: none", "/listen", "no address to listen on"},
		{"listen: '127.0.0.1:http', auth: none", "/listen", "no port"},
		{"listen: 127.0.0.1:70000, auth: none", "/listen", "no port"},
		{"listen: 127.0.0.1:0", "/listen", "no client could prove who it is"},
		{"listen: 127.0.0.1:0, clients: [{name: a}]", "/listen", "no client could prove who it is"},
		{"listen: 0.0.0.0:1, " + tokens, "/listen", "in the clear"},
		{"listen: ':1', " + tokens, "/listen", "in the clear"},
		{"listen: 0.0.0.0:1, auth: none, tls: {cert: c, key: k}", "/auth", "everybody on the network"},
		{"listen: 0.0.0.0:1, tls: {cert: c, key: k}, " + tokens, "/listen", "has to know its names"},
		{"listen: 127.0.0.1:1, auth: none, clients: [{name: a}]", "/auth", "{name: local}"},
		{"oauth: {issuer: 'https://x', resource: 'https://y'}, clients: [{name: a}]", "/oauth", "any client's"},
		{"clients: [{name: a, clientId: s}]", "/clients/0/clientId", "no authorization server"},
		{"listen: 127.0.0.1:1, auth: none, " + tokens, "/auth", "asks nobody for one"},
		{"auth: some", "/auth", "expected one of none"},
		{"names: bar", "/names", `did you mean "bare"`},
		{"profile: openai", "/profile", "openai-strict"},
		{"maxPending: 0", "/maxPending", "from 1"},
		{"tls: {cert: c}", "/tls", `"key" is missing`},
		{"clients: []", "/clients", "at least one client"},
		{"clients: [{token: 'env:A'}]", "/clients/0", `"name" is missing`},
		{"clients: [{name: Claude}]", "/clients/0/name", "cannot name a client"},
		{"clients: [{name: " + strings.Repeat("a", 33) + "}]", "/clients/0/name", "cannot name a client"},
		{"clients: [{name: a, token: s3cr3t}]", "/clients/0/token", "not a reference to a secret"},
		{"clients: [{name: a}, {name: a}]", "/clients/1/name", `of the client "a" already`},
		{"clients: [{name: a, token: 'env:A'}, {name: b, token: 'env:A'}]", "/clients/1/token", `of the client "a" already`},
		{"clients: [{name: a, subject: s}]", "/clients/0/subject", "no authorization server"},
		{"clients: [{name: a, rateLimit: {requests: 1, shared: true}}]", "/clients/0/rateLimit", "not shared"},
		{"clients: [{name: a, ratelimit: {requests: 1}}]", "/clients/0/ratelimit", `did you mean "rateLimit"`},
		{"clients: [{name: a, subject: s}], oauth: {issuer: 'https://x'}", "/oauth", `"resource" is missing`},
		{"clients: [{name: a, subject: s}], oauth: {issuer: 'http://x.example', resource: 'https://y'}", "/oauth/issuer", "not https"},
		{"clients: [{name: a, subject: s}], oauth: {issuer: login, resource: 'https://y'}", "/oauth/issuer", "no URL of a server"},
		{"hosts: ['https://x']", "/hosts/0", "no name of a host"},
		{"origins: [inspector.example.com]", "/origins/0", "no origin"},
	} {
		_, err := agentWith(t, "mcp: {"+tt.block+"}")
		var le *fleet.LoadError
		if !errors.As(err, &le) || len(le.Faults) != 1 || le.Faults[0].Pointer != "/mcp"+tt.pointer || le.Faults[0].Line != 2 ||
			!strings.Contains(le.Faults[0].Message+le.Faults[0].Hint, tt.says) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", tt.block, err)
		}
	}
}

// A rule about a client that can match nothing is refused like every other.
func TestFaultyClientRules(t *testing.T) {
	for _, tt := range []struct{ text, pointer, says string }{
		{"permissions: {deny: [MCP:cursor]}", "/deny/0", "MCP:<client>/agent://<id>/<capability>"},
		{"permissions: {allow: ['MCP:cursor/librarian/x']}", "/allow/0", "MCP:<client>/agent://<id>/<capability>"},
		{"permissions: {allow: ['MCP:cursor/agent://librarian']}", "/allow/0", "use ** for any run"},
		{"permissions: {allow: ['MCP:/agent://librarian/x']}", "/allow/0", "MCP:<client>"},
		{"permissions: {ask: ['mcp:cursor/agent://librarian/x']}", "/ask/0", "written MCP:"},
		{"permissions: {deny: [MCP]}", "/deny/0", "written MCP:"},
		{"permissions: {deny: ['MCP:Cursor/agent://librarian/x']}", "/deny/0", "can name no client"},
		{"mcp: {clients: [{name: cursor}]}\npermissions: {deny: ['MCP:cusror/**']}", "/deny/0", `did you mean "cursor"`},
	} {
		_, err := agentWith(t, tt.text)
		var le *fleet.LoadError
		if !errors.As(err, &le) || len(le.Faults) != 1 || le.Faults[0].Pointer != "/permissions"+tt.pointer || !strings.Contains(le.Faults[0].Message+le.Faults[0].Hint, tt.says) {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
}
