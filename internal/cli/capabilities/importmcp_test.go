package capabilities

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/oauthtest"
)

// toolServer serves tools with these input schemas, behind a token.
func toolServer(t *testing.T, schemas map[string]string) (server *mcp.Server, url string) {
	t.Helper()
	server = mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	for name, schema := range schemas {
		server.AddTool(&mcp.Tool{Name: name, Description: "Does\n\"" + name + "\": well # really.", InputSchema: json.RawMessage(schema)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
	}
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(h.Close)
	return server, h.URL
}

func read(t *testing.T, env *clitest.Env, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(env.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A server that takes tokens is read with those of the agent that its agent.yaml declares.
func TestImportFromProtectedServer(t *testing.T) {
	t.Parallel()
	s := oauthtest.New(t)
	s.Clients["desk"] = oauthtest.Client{Secret: "the secret of a client"}
	server, _ := toolServer(t, map[string]string{"c": `{"type":"object"}`})
	r := s.Protect(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil), "use")
	env := twoClerks(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the secret of a client"), 0o600); err != nil {
		t.Fatal(err)
	}
	env.Write(t, "desk/agent.yaml", "name: desk\nmcpServers: {tools: {url: \""+r.URL+"\", oauth: {grant: client-credentials, issuer: \""+s.URL+"\", clientId: desk, clientSecret: \"file:"+secret+"\"}}}\n")
	if err := ImportMCP(t.Context(), &env.Env, ImportRequest{Agent: "desk", Server: "tools", Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if text := read(t, env, "desk/capabilities.yaml"); !strings.Contains(text, "name: c") {
		t.Errorf("%s", text)
	}
	env.Write(t, "desk/agent.yaml", "name: desk\nmcpServers: {tools: {url: \""+r.URL+"\", oauth: {}}}\n")
	err := ImportMCP(t.Context(), &env.Env, ImportRequest{Agent: "desk", Server: "tools", Timeout: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "run `agentd mcp login --agent desk tools`") {
		t.Errorf("%v", err)
	}
}

// Tools of a server that others run are imported as they are, into an agent that offered nothing
// before, and the lock gets this agent alone.
func TestImportMCP(t *testing.T) {
	t.Parallel()
	env := twoClerks(t)
	_, url := toolServer(t, map[string]string{
		"a.b": `{"type":"object","properties":{"n":{"const":9007199254740993,"default":"007"},"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"patternProperties":{"^a: b":true}}}}`,
		"c":   `{"type":"object"}`,
	})
	if err := Lock(&env.Env, ""); err != nil {
		t.Fatal(err)
	}
	breakClerk(t, env) // what the lock is to go on showing
	r := ImportRequest{Agent: "desk", URL: url, Server: "tools", Prefix: "t-", Timeout: time.Minute}
	dry := r
	dry.DryRun = true
	before := read(t, env, "desk/agent.yaml")
	if err := ImportMCP(t.Context(), &env.Env, dry); err != nil || !strings.Contains(env.Out.String(), "name: t-a-b") || read(t, env, "desk/agent.yaml") != before {
		t.Fatalf("dry run: %v, %s", err, env.Out)
	}
	if err := ImportMCP(t.Context(), &env.Env, r); err != nil {
		t.Fatal(err)
	}
	if got := read(t, env, "desk/agent.yaml"); !strings.HasPrefix(got, before) || !strings.Contains(got, "tool: a.b\n") || !strings.Contains(got, "url: "+url) {
		t.Errorf("got\n%s", got)
	}
	doc, err := capability.Load(filepath.Join(env.Dir, "desk", "capabilities.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, ok := doc.Lookup("t-a-b")
	if !ok || c.SchemaProfile != capability.ProfileFull || c.Result != capability.ResultMCP || c.Description != "Does\n\"a.b\": well # really." ||
		!strings.HasSuffix(string(c.Input.Source), `"type":"object","properties":{"n":{"const":9007199254740993,"default":"007"},"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"patternProperties":{"^a: b":true}}}}`) {
		t.Errorf("got %+v, %s", c, c.Input.Source)
	}
	lock, err := compat.ReadLock(filepath.Join(env.Dir, LockName))
	if err != nil || lock.Peers["agent://desk"].Digest != doc.Digest() {
		t.Errorf("the lock has %+v, %v", lock, err)
	}
	if err := Check(&env.Env, "", "text", false); clitest.Code(err) != cli.ExitFinding {
		t.Errorf("the import has accepted what others changed: %v", err)
	}
	env.Reset()
	again := ImportRequest{Agent: "desk", Server: "tools", Tools: []string{"c"}, Timeout: time.Minute}
	if err := ImportMCP(t.Context(), &env.Env, again); err != nil || !strings.Contains(env.Err.String(), "0 new, 0 changed, 1 unchanged") {
		t.Errorf("again: %v, %s", err, env.Err)
	}
}

// An import that cannot be whole changes no file.
func TestImportMCPRefused(t *testing.T) {
	t.Parallel()
	_, url := toolServer(t, map[string]string{"echo": `{"type":"object"}`, "far": `{"type":"object","$ref":"https://example.com/x"}`})
	for name, tt := range map[string]struct {
		change func(env *clitest.Env, r *ImportRequest)
		code   int
		want   string
	}{
		"no such agent":        {func(_ *clitest.Env, r *ImportRequest) { r.Agent = "nobody" }, cli.ExitFailed, `no agent "nobody"`},
		"no server":            {func(_ *clitest.Env, r *ImportRequest) { r.URL = "" }, cli.ExitUsage, "--command or a --url"},
		"a name that is taken": {func(_ *clitest.Env, r *ImportRequest) { r.Tools = []string{"echo"} }, cli.ExitFailed, `would be the capability "echo"`},
		"it cannot be checked": {func(_ *clitest.Env, r *ImportRequest) { r.Tools = []string{"far"} }, cli.ExitFailed, "agentd cannot check the tool far"},
		"variables of a URL":   {func(_ *clitest.Env, r *ImportRequest) { r.Env = []string{"A=b"} }, cli.ExitUsage, "are for a program"},
		"other variables": {func(env *clitest.Env, r *ImportRequest) {
			env.Write(t, "copier/agent.yaml", read(t, env, "copier/agent.yaml")+"mcpServers: {tools: {command: [x], env: {A: b}}}\n")
			r.Server, r.URL, r.Env = "tools", "", []string{"A=b", "B=c"}
		}, cli.ExitUsage, `variables of the server "tools" are its env in agent.yaml`},
		"variables that it has": {func(env *clitest.Env, r *ImportRequest) {
			env.Write(t, "copier/agent.yaml", read(t, env, "copier/agent.yaml")+"mcpServers: {tools: {command: [/nowhere/at/all], env: {A: b}}}\n")
			r.Server, r.URL, r.Env = "tools", "", []string{"A=b"}
		}, cli.ExitFailed, "the MCP server tools"}, // it is looked for
		"nobody is there": {func(_ *clitest.Env, r *ImportRequest) { r.URL = "http://127.0.0.1:1/" }, cli.ExitFailed, "the MCP server 127-0-0-1"},
		"a lock of servers that cannot be read": {func(env *clitest.Env, r *ImportRequest) {
			r.Tools, r.Prefix = []string{"echo"}, "t-"
			env.Write(t, "copier/mcp.lock.json", "{}")
		}, cli.ExitFailed, "has version 0"},
		"a lock that cannot be read": {func(env *clitest.Env, r *ImportRequest) {
			r.Tools, r.Prefix = []string{"echo"}, "t-"
			env.Write(t, LockName, "{}")
		}, cli.ExitFailed, "lockVersion is 0"},
		"it is JSON": {func(env *clitest.Env, _ *ImportRequest) {
			dir := filepath.Join(env.Dir, "copier")
			_ = os.Rename(filepath.Join(dir, "capabilities.yaml"), filepath.Join(dir, "capabilities.json"))
			env.Write(t, "copier/capabilities.json", `{"version":1,"agent":"agent://copier","transports":[{"kind":"memory","topics":{"requests":"agents.copier.requests"}}],"capabilities":[{"name":"echo"}]}`)
		}, cli.ExitFailed, "rename it to .yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := twoClerks(t)
			r := ImportRequest{Agent: "copier", URL: url, Timeout: time.Minute}
			tt.change(env, &r)
			before := read(t, env, "copier/agent.yaml")
			err := ImportMCP(t.Context(), &env.Env, r)
			if clitest.Code(err) != tt.code || err == nil || !strings.Contains(err.Error(), tt.want) || read(t, env, "copier/agent.yaml") != before {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// A server that is not named gets its name from what is run.
func TestServerNames(t *testing.T) {
	t.Parallel()
	for want, command := range map[string]string{
		"memory":     "npx -y @modelcontextprotocol/server-memory",
		"filesystem": "npx @modelcontextprotocol/server-filesystem /srv/files",
		"mcp-git":    "uvx mcp-git --repository .",
		"weather":    "./bin/Weather",
	} {
		if got := serverName(nameIn(strings.Fields(command))); got != want {
			t.Errorf("%s is called %q, want %q", command, got, want)
		}
	}
}
