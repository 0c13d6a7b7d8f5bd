package mcplogin

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/cli/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/oauthtest"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

// office is a fleet whose agent desk has two tools of servers that are protected: one for whoever
// is logged in, and one for a client that proves itself.
const office = `
-- fleet.yaml --
version: 1
name: office
agents: [{id: desk, path: ./desk}, {id: caller, path: ./caller}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
-- rpc-peers.yaml --
version: 1
peers: [{agent: "agent://desk", transports: [{kind: memory, topics: {requests: agents.desk.requests}}]}]
-- caller/agent.yaml --
name: caller
-- desk/agent.yaml --
name: desk
mcpServers:
  issues: {url: "%[1]s", oauth: {}}
  weather: {url: "%[2]s", oauth: {grant: client-credentials, issuer: "%[3]s", clientId: desk, clientSecret: "file:%[4]s", method: client_secret_post}}
skills:
  issue: {mcp: {server: issues, tool: echo}}
  forecast: {mcp: {server: weather, tool: echo}}
-- desk/capabilities.yaml --
version: 1
agent: agent://desk
transports: [{kind: memory, topics: {requests: agents.desk.requests}}]
capabilities:
  - {name: issue, description: Says it., schemaProfile: full, inputSchema: {type: object}}
  - {name: forecast, description: Says it., schemaProfile: full, inputSchema: {type: object}}
`

// echo is an MCP server that says what it is told.
func echo() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Says it.", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: r.Params.Arguments, Content: []mcp.Content{}}, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
}

// An agent uses a server once somebody has logged in, until the login ends, and again after the
// next one: without a restart, and with one place to see why it does not. No file of the agent
// and nothing that it says has a token.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := oauthtest.New(t)
	const secret = "the secret of the client, which is not to be seen"
	s.Clients["desk"] = oauthtest.Client{Secret: secret}
	issues, weather := s.Protect(echo(), "use"), s.Protect(echo())
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	env := clitest.New(t, fmt.Sprintf(office, issues.URL, weather.URL, s.URL, file))
	running := env.Start(t)
	caller, _ := running.Daemon("caller")
	desk, _ := running.Daemon("desk")
	call := func(capability, payload string) (string, error) {
		r, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://desk", Capability: capability, Payload: json.RawMessage(payload)})
		if err != nil {
			return "", err
		}
		return string(r.Response), nil
	}
	works := func(capability string) {
		t.Helper()
		eventually.Holds(t, capability+" answers", func() bool {
			out, err := call(capability, `{"n":9007199254740993}`)
			return err == nil && strings.Contains(out, "9007199254740993")
		})
	}
	status := func(wants ...string) {
		t.Helper()
		env.Reset()
		_ = fleet.Status(t.Context(), &env.Env) // it fails where an agent is not ready
		for _, want := range wants {
			if !strings.Contains(env.Out.String(), want) {
				t.Errorf("no %q in %s", want, env.Out)
			}
		}
	}
	works("forecast")
	eventually.Holds(t, "the agent is not ready", func() bool { return notReady(desk) })
	const remedy = "run `agentd mcp login --agent desk issues`"
	if _, err := call("issue", `{}`); err == nil || !strings.Contains(err.Error(), remedy) {
		t.Errorf("%v", err)
	}
	status("not-ready", "needs a login", remedy)
	r := Request{Agent: "desk", Server: "issues", Open: oauthtest.Browse}
	env.Reset()
	if err := Login(t.Context(), &env.Env, r); err != nil || !strings.Contains(env.Out.String(), "desk is logged in at issues ("+s.URL+"), until its authorization server ends it; the server has 1 tools") || !strings.Contains(env.Err.String(), s.URL+"/authorize?") {
		t.Errorf("%v: %s%s", err, env.Out, env.Err)
	}
	works("issue")
	eventually.Holds(t, "the agent is ready", func() bool { return !notReady(desk) })
	s.Rotate() // tokens are refused, and renewed
	works("issue")
	works("forecast")
	tokens := append(issues.Tokens(), weather.Tokens()...)
	if out, err := call("issue", `{"t":"`+issues.Tokens()[len(issues.Tokens())-1]+`"}`); err != nil || !strings.Contains(out, "redacted") {
		t.Errorf("%s, %v", out, err)
	}
	// The login ends, and the next one mends it.
	s.EndLogins()
	s.Rotate()
	if _, err := call("issue", `{}`); err == nil || !strings.Contains(err.Error(), "cannot be renewed: invalid_grant): "+remedy) {
		t.Errorf("%v", err)
	}
	eventually.Holds(t, "the agent is not ready", func() bool { return notReady(desk) })
	env.Reset()
	env.Format = output.JSON
	if err := Login(t.Context(), &env.Env, r); err != nil || !strings.Contains(env.Out.String(), `"renewable": true`) || !strings.Contains(env.Out.String(), `"tools": 1`) {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Format = output.Table
	works("issue")
	env.Reset()
	if err := Logout(t.Context(), &env.Env, r); err != nil || env.Out.String() != "desk is logged out at issues\n" || s.Logins() != 0 {
		t.Errorf("%v: %s, %d logins", err, env.Out, s.Logins())
	}
	eventually.Holds(t, "calls are refused", func() bool {
		_, err := call("issue", `{}`)
		return err != nil && strings.Contains(err.Error(), "nobody is logged in")
	})
	if err := Logout(t.Context(), &env.Env, r); err == nil || !strings.Contains(err.Error(), "nobody is logged in") {
		t.Errorf("%v", err)
	}
	noFileHas(t, env.Vars["XDG_STATE_HOME"], append(tokens, secret))
}

// notReady reports whether an agent says that its server needs a login.
func notReady(d *daemon.Daemon) bool {
	s := d.Status()
	return !s.Ready && strings.Contains(s.Reason, "needs a login")
}

func noFileHas(t *testing.T, dir string, secrets []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files++
		for _, s := range secrets {
			if strings.Contains(string(data), s) {
				t.Errorf("%s has a token", path)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%v, %d files", err, files)
	}
}

// What cannot be logged in at is said before a browser is opened.
func TestLoginRefused(t *testing.T) {
	t.Parallel()
	s := oauthtest.New(t)
	r := s.Protect(echo())
	open := oauthtest.New(t) // which is no MCP server
	env := clitest.New(t, fmt.Sprintf(office, open.URL, r.URL, s.URL, "/none"))
	for name, row := range map[string]struct {
		Request
		want string
	}{
		"no agent":       {Request{Agent: "clerk", Server: "issues"}, "no agent"},
		"no server":      {Request{Agent: "desk", Server: "none"}, "no MCP server"},
		"a client":       {Request{Agent: "desk", Server: "weather"}, "gets its tokens of the MCP server weather by itself"},
		"no MCP server ": {Request{Agent: "desk", Server: "issues"}, "the MCP server issues"},
	} {
		row.Open = func(string) error { t.Errorf("%s: a browser", name); return nil }
		if err := Login(t.Context(), &env.Env, row.Request); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
