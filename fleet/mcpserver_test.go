package fleet_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

const withServers = `name: a
mcpServers:
  memory: {command: [npx, -y, server], env: {KEY: "env:SECRET"}, inheritEnv: [X_*], sandbox: {connect: [5432]}, pending: 3, perMinute: 60, maxMessageBytes: 1000, startTimeoutMs: 5000}
  issues: {url: "https://mcp.example.com/mcp", credentials: [{scheme: Bearer, secret: "env:TOKEN"}], allowAddresses: [10.0.0.0/8], era: "2025-11-25", roots: [/srv/notes], descriptions: refuse}
skills:
  remember: {mcp: {server: memory}}
  new-issue: {mcp: {server: issues, tool: create_issue, text: json, descriptions: refuse}}
  own: {mcp: {command: [server], tool: f}}
  close-issue: {mcp: {server: issues}}
  list-issues: {mcp: {server: issues, descriptions: report}}
`

// Skills name the tools that run them, and servers are programs or URLs.
func TestMCPServers(t *testing.T) {
	a, err := agentWith(t, strings.TrimPrefix(withServers, "name: a\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := a.MCPServer("memory")
	if !ok || s.Process == nil || len(s.Process.Command) != 3 || s.Process.Env[0] != "KEY=env:SECRET" || s.Sandbox.Connect[0] != 5432 ||
		s.Pending != 3 || s.PerMinute != 60 || s.MaxMessageBytes != 1000 || s.StartTimeout.Seconds() != 5 {
		t.Errorf("got %+v", s)
	}
	s, ok = a.MCPServer("issues")
	if !ok || s.Process != nil || s.URL != "https://mcp.example.com/mcp" || s.Credentials[0] != (fleet.MCPCredential{Scheme: "Bearer", SecretRef: "env:TOKEN"}) || s.Era != "2025-11-25" ||
		s.Roots[0] != "/srv/notes" || !s.PinWords {
		t.Errorf("got %+v", s)
	}
	for name, want := range map[string]fleet.ServerTool{
		"remember":  {Server: "memory", Tool: "remember"},
		"new-issue": {Server: "issues", Tool: "create_issue", Text: "json", PinWords: true},
		"own":       {Server: "own", Tool: "f"},
		// What a server says of descriptions holds for its tools that say nothing.
		"close-issue": {Server: "issues", Tool: "close-issue", PinWords: true},
		"list-issues": {Server: "issues", Tool: "list-issues"},
	} {
		skill, _ := a.Skill(name)
		if got := skill.MCP; got == nil || got.Server != want.Server || got.Tool != want.Tool || got.Text != want.Text || got.PinWords != want.PinWords {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	// The programs of servers are held to what those of skills are.
	if got := a.Programs(); len(got) != 2 || got[0].Name != "MCP server memory" || got[1].Name != "MCP server own" {
		t.Errorf("got %+v", got)
	}
}

// How tokens of a server are had, and what would not work, or give a secret away.
func TestMCPAuth(t *testing.T) {
	with := func(oauth string) (*fleet.MCPAuth, error) {
		a, err := agentWith(t, `mcpServers: {s: {url: "https://mcp.example.com/mcp", oauth: `+oauth+`}}`)
		if err != nil {
			return nil, err
		}
		return a.MCPServers[0].OAuth, nil
	}
	if a, err := with("{}"); err != nil || a.Grant != fleet.GrantLogin {
		t.Errorf("%+v, %v", a, err)
	}
	const client = `issuer: "https://login.example.com", clientId: desk`
	for text, want := range map[string]fleet.MCPAuth{
		`{grant: client-credentials, ` + client + `, clientSecret: "env:S", method: client_secret_post, scopes: [a, b]}`: {Grant: fleet.GrantClientCredentials, ClientSecret: "env:S", Method: "client_secret_post"},
		`{grant: client-credentials, ` + client + `, privateKey: "file:/k", keyId: k1, algorithm: PS256}`:                {Grant: fleet.GrantClientCredentials, PrivateKey: "file:/k", KeyID: "k1", Algorithm: "PS256"},
		`{grant: jwt-bearer, ` + client + `, assertion: "file:/t"}`:                                                      {Grant: fleet.GrantJWTBearer, Assertion: "file:/t"},
		`{` + client + `, redirectPort: 7000, clientMetadata: "https://a.example.com/d.json"}`:                           {Grant: fleet.GrantLogin, RedirectPort: 7000, ClientMetadata: "https://a.example.com/d.json"},
	} {
		want.Issuer, want.ClientID = "https://login.example.com", "desk"
		a, err := with(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if strings.Contains(text, "scopes") != (strings.Join(a.Scopes, " ") == "a b") {
			t.Errorf("scopes %q", a.Scopes)
		}
		if a.Scopes = nil; !reflect.DeepEqual(*a, want) {
			t.Errorf("got %+v", a)
		}
	}
	for text, want := range map[string]string{
		`{clientId: desk, clientSecret: "hunter2"}`:                                         "not a reference to a secret",
		`{clientId: desk, clientSecret: "env:S"}`:                                           "an authorization server of their own",
		`{issuer: "https://login.example.com", clientSecret: "env:S"}`:                      "the client that the secret is of is missing",
		`{` + client + `, clientSecret: "env:S", privateKey: "env:K"}`:                      "by a secret or by a key",
		`{grant: client-credentials, ` + client + `}`:                                       "nothing proves the client",
		`{grant: jwt-bearer, ` + client + `}`:                                               "no token to ask with",
		`{grant: jwt-bearer, ` + client + `, assertion: "env:T", clientSecret: "env:S"}`:    "remove clientSecret",
		`{` + client + `, assertion: "env:T"}`:                                              "only the grant jwt-bearer",
		`{grant: client-credentials, ` + client + `, privateKey: "env:K", redirectPort: 1}`: "are for logins",
		`{issuer: "http://login.example.com"}`:                                              "not https",
		`{clientMetadata: "https://a.example.com"}`:                                         "no https URL of a document",
		`{grant: implicit}`: "expected one of login, client-credentials, jwt-bearer",
		`{}, credentials: [{scheme: Bearer, secret: "env:T"}]`: "credentials have the header",
	} {
		if _, err := with(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := agentWith(t, "mcpServers: {s: {command: [a], oauth: {}}}"); err == nil {
		t.Error("a program has tokens")
	}
}

func TestMCPServersRefused(t *testing.T) {
	for text, want := range map[string]string{
		"skills: {x: {mcp: {server: memori}}}\nmcpServers: {memory: {command: [a]}}": `there is no MCP server "memori" under mcpServers (did you mean "memory"?)`,
		"skills: {x: {mcp: {tool: y}}}":                                              "missing",
		"skills: {x: {mcp: {server: s}, process: {command: [a]}}}":                   "a skill is a process, a worker, a web service, an action or a tool of an MCP server",
		"mcpServers: {s: {command: [a], descriptions: forget}}":                      "expected one of report, refuse",
		"mcpServers: {s: {command: [a], roots: [../x]}}":                             "the path leads out",
		"mcpServers: {s: {command: [a], url: 'http://x/'}}":                          "a server is a command or a URL",
		"mcpServers: {s: {url: 'http://mcp.example.com/mcp'}}":                       "the server would be reached without encryption (use https",
		"mcpServers: {s: {url: 'http://localhost:8000/mcp'}}":                        "the server would be reached without encryption",
		"mcpServers: {s: {url: 'x'}}":                                                "expected the URL of an MCP server",
		"mcpServers: {s: {url: 'https://u:p@x/'}}":                                   "a URL holds no password",
		"mcpServers: {s: {url: 'https://x/', env: {A: b}}}":                          `unknown key "env"`,
		"mcpServers: {s: {command: [a], credentials: []}}":                           `unknown key "credentials"`,
		"mcpServers: {s: {command: [a], era: '2024-11-05'}}":                         "expected one of 2025-11-25, 2026-07-28",
		"mcpServers: {x: {command: [a]}}\nskills: {x: {mcp: {command: [b]}}}":        "rename one of them",
		"mcpServers: {s: {command: [a], sandbox: {write: [agents]}}}\nskills: {}":    "the skill \"MCP server s\" could change agents/concierge",
		"skills: {x: {mcp: {command: [a], text: xml}}}":                              "expected one of json, string",
	} {
		if _, err := agentWith(t, text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
