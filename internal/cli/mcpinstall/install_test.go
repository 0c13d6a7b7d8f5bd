package mcpinstall

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

// desk is a server that is started, hub one that is connected to.
var (
	desk = server{name: "desk", command: "/bin/agentd", args: []string{"mcp", "--agent", "desk"}, env: []string{"XDG_STATE_HOME"}}
	hub  = server{name: "desk", url: "http://127.0.0.1:7411/mcp", token: "DESK_TOKEN"}
)

func byName(t *testing.T, name string) client {
	t.Helper()
	for _, c := range clients() {
		if c.name == name {
			return c
		}
	}
	t.Fatal("no client " + name)
	return client{}
}

// What each client gets, in its own words.
func TestEntries(t *testing.T) {
	for _, c := range []struct {
		client string
		s      server
		want   string
	}{
		{"claude-code", desk, `{
  "mcpServers": {
    "desk": {
      "type": "stdio",
      "command": "/bin/agentd",
      "args": ["mcp", "--agent", "desk"],
      "env": {
        "XDG_STATE_HOME": "${XDG_STATE_HOME:-}"
      }
    }
  }
}
`},
		{"claude-code", hub, `{
  "mcpServers": {
    "desk": {
      "type": "http",
      "url": "http://127.0.0.1:7411/mcp",
      "headers": {
        "Authorization": "Bearer ${DESK_TOKEN}"
      }
    }
  }
}
`},
		{"cursor", hub, `{
  "mcpServers": {
    "desk": {
      "url": "http://127.0.0.1:7411/mcp",
      "headers": {
        "Authorization": "Bearer ${env:DESK_TOKEN}"
      }
    }
  }
}
`},
		{"vscode", desk, `{
  "servers": {
    "desk": {
      "type": "stdio",
      "command": "/bin/agentd",
      "args": ["mcp", "--agent", "desk"],
      "env": {
        "XDG_STATE_HOME": "${env:XDG_STATE_HOME}"
      }
    }
  }
}
`},
		{"codex", desk, `[mcp_servers.desk]
command = "/bin/agentd"
args = ["mcp", "--agent", "desk"]
env_vars = ["XDG_STATE_HOME"]
`},
		{"codex", hub, `[mcp_servers.desk]
url = "http://127.0.0.1:7411/mcp"
bearer_token_env_var = "DESK_TOKEN"
`},
	} {
		if got := string(byName(t, c.client).snippet(c.s)); got != c.want {
			t.Errorf("%s:\n%s", c.client, got)
		}
	}
}

// Everything else in a file stays, byte by byte.
func TestMergeJSON(t *testing.T) {
	small := server{name: "desk", command: "/a", args: []string{"mcp", "--agent", "desk"}}
	for _, c := range []struct{ name, old, want string }{
		{"comments", `// mine
{
    /* servers */
    "mcpServers": {
        "other": {"command": "x"}, // keep
        // the last one
    },
    "rest": [1, 2,],
}
`, `// mine
{
    /* servers */
    "mcpServers": {
        "other": {"command": "x"}, // keep
        // the last one
        "desk": {
            "command": "/a",
            "args": ["mcp", "--agent", "desk"]
        }
    },
    "rest": [1, 2,],
}
`},
		{"the user's own keys of the entry", `{
	"mcpServers": {
		"desk": {
			"command": "/old", // where it was
			"args": ["mcp", "--agent", "desk"],
			"disabled": true
		}
	}
}`, `{
	"mcpServers": {
		"desk": {
			"command": "/a", // where it was
			"args": ["mcp", "--agent", "desk"],
			"disabled": true
		}
	}
}`},
		{"from HTTP", `{"mcpServers": {"desk": {"url": "http://127.0.0.1:1/mcp", "args": ["mcp", "--agent"], "timeout": 5}}}`,
			`{"mcpServers": {"desk": { "args": ["mcp", "--agent", "desk"], "timeout": 5,
  "command": "/a"
}}}`},
		{"no servers", "{\n  \"theme\": \"dark\"\n}\n", "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"desk\": {\n      \"command\": \"/a\",\n      \"args\": [\"mcp\", \"--agent\", \"desk\"]\n    }\n  }\n}\n"},
		{"a byte order mark and other line ends", "\xef\xbb\xbf{\r\n  \"a\": 1\r\n}\r\n", "\xef\xbb\xbf{\r\n  \"a\": 1,\n  \"mcpServers\": {\n    \"desk\": {\n      \"command\": \"/a\",\n      \"args\": [\"mcp\", \"--agent\", \"desk\"]\n    }\n  }\r\n}\r\n"},
	} {
		cursor := byName(t, "cursor")
		got, err := cursor.merge([]byte(c.old), small, false)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s", c.name, err, got)
			continue
		}
		again, err := cursor.merge(got, small, false)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: it changes again: %v\n%s", c.name, err, again)
		}
	}
}

func TestMergeTOML(t *testing.T) {
	codex := byName(t, "codex")
	for _, c := range []struct{ name, old, want string }{
		{"comments", `# mine
model = "x" # the model

[mcp_servers.other] # keep
command = "x"
args = [
  "a", # first
]
`, `# mine
model = "x" # the model

[mcp_servers.other] # keep
command = "x"
args = [
  "a", # first
]

[mcp_servers.desk]
command = "/bin/agentd"
args = ["mcp", "--agent", "desk"]
env_vars = ["XDG_STATE_HOME"]
`},
		{"the user's own keys of the entry", `[mcp_servers."desk"]
command = "/old" # where it was
args = ["mcp", "--agent", "desk"]
env_vars = ["MINE"]
startup_timeout_sec = 20

[mcp_servers.desk.tools.x]
approval_mode = "approve"
`, `[mcp_servers."desk"]
command = "/bin/agentd" # where it was
args = ["mcp", "--agent", "desk"]
env_vars = ["XDG_STATE_HOME", "MINE"]
startup_timeout_sec = 20

[mcp_servers.desk.tools.x]
approval_mode = "approve"
`},
		{"no end of the last line", `a = '''
[mcp_servers.desk]
'''`, `a = '''
[mcp_servers.desk]
'''

[mcp_servers.desk]
command = "/bin/agentd"
args = ["mcp", "--agent", "desk"]
env_vars = ["XDG_STATE_HOME"]
`},
	} {
		got, err := codex.merge([]byte(c.old), desk, false)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s", c.name, err, got)
			continue
		}
		again, err := codex.merge(got, desk, false)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: it changes again: %v\n%s", c.name, err, again)
		}
		tomlReads(t, got)
	}
	over, err := codex.merge([]byte("[mcp_servers.desk]\ncommand = \"/a\"\nargs = [\"mcp\", \"--agent\", \"desk\"]\nenabled = true\n"), hub, false)
	if want := "[mcp_servers.desk]\nenabled = true\nurl = \"http://127.0.0.1:7411/mcp\"\nbearer_token_env_var = \"DESK_TOKEN\"\n"; err != nil || string(over) != want {
		t.Errorf("to HTTP: %v\n%s", err, over)
	}
}

// tomlReads checks that Python's reader takes a file and finds the server, where there is one.
func tomlReads(t *testing.T, text []byte) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import tomllib").Run() != nil {
		t.Log("not read by Python: there is none with tomllib")
		return
	}
	cmd := exec.Command(python, "-c", "import sys, tomllib; tomllib.load(sys.stdin.buffer)['mcp_servers']['desk']")
	cmd.Stdin = strings.NewReader(string(text))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, text)
	}
}

// What cannot be changed without a loss is left alone.
func TestKept(t *testing.T) {
	ofFleet := desk
	ofFleet.args = []string{"--fleet", "/fleet", "mcp", "--agent", "desk"}
	for _, c := range []struct{ client, old, why string }{
		{"cursor", `{"mcpServers": {"desk": {"command": "npx", "args": ["x"]}}}`, `another server "desk"`},
		{"cursor", `{"mcpServers": {"desk": {"url": "https://example.com/mcp"}}}`, `another server "desk"`},
		{"cursor", `{"mcpServers": {"desk": {"command": "a", "args": ["--fleet", "/fleet", "mcp", /* why */ "--agent"]}}}`, "comments in its \"args\""},
		{"cursor", `{"mcpServers": {"desk": {"command": "/bin/agentd", "args": ["--fleet", "/other", "mcp", "--agent", "desk"]}}}`, `another server "desk"`},
		{"cursor", `{"mcpServers": []}`, `"mcpServers" is no object`},
		{"cursor", `{"mcpServers": {}, "mcpServers": {}}`, `"mcpServers" twice`},
		{"cursor", "{\n\"a\": 1,\n b}", "no JSON: line 3"},
		{"cursor", `[]`, "no JSON object"},
		{"cursor", `{} {}`, "no JSON object"},
		{"cursor", `{"a": /* open`, "no JSON"},
		{"codex", "mcp_servers = {desk = {command = \"a\"}}\n", "mcp_servers is written as a value"},
		{"codex", "[mcp_servers]\ndesk = {command = \"a\"}\n", "mcp_servers.desk is written as a value"},
		{"codex", "[mcp_servers]\ndesk.command = \"a\"\n", "key of several parts"},
		{"codex", "[[mcp_servers]]\nname = \"desk\"\n", "list of tables"},
		{"codex", "[mcp_servers.desk]\ncommand = \"npx\"\n", `another server "desk"`},
		{"codex", "[mcp_servers.desk]\nargs = [\"--fleet\", \"/other\", \"mcp\", \"--agent\", \"desk\"]\n", `another server "desk"`},
		{"codex", "[mcp_servers.desk]\nargs = [\"--fleet\", \"/fleet\", \"mcp\", \"--agent\", # why\n \"x\"]\n", "comments in its \"args\""},
		{"codex", "a = \"open\n", "no TOML: line 1"},
		{"codex", "a\n", "no TOML"},
	} {
		got, err := byName(t, c.client).merge([]byte(c.old), ofFleet, false)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v\n%s", c.old, err, got)
		}
	}
	for _, c := range []struct{ client, old string }{
		{"cursor", `{"mcpServers": {"desk": {"command": "npx", "x": 1}, "other": {}}}`},
		{"codex", "[mcp_servers.desk]\ncommand = \"npx\"\nurl = \"x\"\n"},
	} {
		got, err := byName(t, c.client).merge([]byte(c.old), desk, true)
		if err != nil || strings.Contains(string(got), "npx") || !strings.Contains(string(got), "/bin/agentd") {
			t.Errorf("%v\n%s", err, got)
		}
	}
}

// Whatever JSON a file has, only the server changes, and only once.
func FuzzMergeJSON(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {}}, "b": [1, {"c": null}]}`))
	f.Add([]byte("{\n\t// x\n\t\"mcpServers\": {},\n}"))
	f.Add([]byte(`{"mcpServers":{"desk":{"command":"x","args":["mcp","--agent"],"url":"y"}}}`))
	f.Fuzz(func(t *testing.T, old []byte) {
		cursor := byName(t, "cursor")
		got, err := cursor.merge(old, desk, false)
		if err != nil {
			return
		}
		if again, err := cursor.merge(got, desk, false); err != nil || string(again) != string(got) {
			t.Fatalf("%v: %q becomes %q", err, got, again)
		}
		var before, after map[string]any
		if json.Unmarshal(old, &before) != nil {
			return // comments
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%v: %q", err, got)
		}
		for _, m := range []map[string]any{before, after} {
			if all, ok := m["mcpServers"].(map[string]any); ok {
				if delete(all, "desk"); len(all) == 0 {
					delete(m, "mcpServers")
				}
			}
		}
		if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
			t.Fatalf("%q becomes %q", old, got)
		}
	})
}

// The same for TOML: what is read stays where it is.
func FuzzMergeTOML(f *testing.F) {
	f.Add([]byte("a = 1\n[mcp_servers.x]\ncommand = \"y\" # z\n"))
	f.Add([]byte("[mcp_servers.desk]\nargs = [\"mcp\", \"--agent\"]\nurl = 'x'\n[t]\nb = '''\n'''"))
	f.Fuzz(func(t *testing.T, old []byte) {
		codex := byName(t, "codex")
		got, err := codex.merge(old, desk, false)
		if err != nil {
			return
		}
		if again, err := codex.merge(got, desk, false); err != nil || string(again) != string(got) {
			t.Fatalf("%v: %q becomes %q", err, got, again)
		}
	})
}

// office is clitest's, and its desk serves MCP over HTTP to two clients.
var office = strings.Replace(clitest.Office, "-- desk/agent.yaml --\nname: desk\n", `-- desk/agent.yaml --
name: desk
mcp:
  listen: 127.0.0.1:7411
  clients:
    - {name: claude-code, token: "env:DESK_TOKEN"}
    - {name: mine, token: "file:/run/token"}
    - {name: codex}
`, 1)

func TestInstall(t *testing.T) {
	e := clitest.New(t, office)
	file := filepath.Join(e.Dir, "project", ".mcp.json")
	r := Request{Client: "claude-code", Agent: "desk", File: file}
	if err := Install(&e.Env, r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{quote(self), quote(e.Dir), `"--agent", "desk", "--client", "claude-code"`, `"XDG_STATE_HOME": "${XDG_STATE_HOME:-}"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	// Again, through a link, with another mode: nothing changes but what has to.
	link := filepath.Join(e.Dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	r.File = link
	if err := Install(&e.Env, r); err != nil || !strings.Contains(e.Out.String(), "has the server desk already") {
		t.Errorf("%v, %s", err, e.Out.String())
	}
	r.HTTP = true
	if err := Install(&e.Env, r); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(file)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v (%v)", info.Mode(), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if !strings.Contains(string(text), `"url": "http://127.0.0.1:7411/mcp"`) || !strings.Contains(string(text), `"Bearer ${DESK_TOKEN}"`) || strings.Contains(string(text), "command") {
		t.Errorf("over HTTP: %s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(e.Dir, "project", ".agentd*")); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// Over HTTP a client is told the URL by which the agent answers, wherever it listens.
func TestAddress(t *testing.T) {
	for _, c := range []struct {
		face fleet.MCP
		want string
	}{
		{fleet.MCP{Listen: "127.0.0.1:7411", Hosts: []string{"mcp.example.com"}}, "http://127.0.0.1:7411/mcp"},
		{fleet.MCP{Listen: "[::1]:7411", TLS: &fleet.MCPTLS{}}, "https://[::1]:7411/mcp"},
		{fleet.MCP{Listen: "0.0.0.0:7411", TLS: &fleet.MCPTLS{}, Hosts: []string{"mcp.example.com", "other"}}, "https://mcp.example.com:7411/mcp"},
		{fleet.MCP{Listen: ":7411", TLS: &fleet.MCPTLS{}, Hosts: []string{"mcp.example.com:443"}}, "https://mcp.example.com:443/mcp"},
		{fleet.MCP{Listen: ":7411", TLS: &fleet.MCPTLS{}, Hosts: []string{"[2001:db8::1]"}}, "https://[2001:db8::1]:7411/mcp"},
		{fleet.MCP{Listen: "127.0.0.1:7411", OAuth: &fleet.MCPOAuth{Resource: "https://mcp.example.com/mcp"}}, "https://mcp.example.com/mcp"},
	} {
		if got, err := address("desk", c.face); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v", c.face, got, err)
		}
	}
}

// A program of `go run` has gone when a client starts it.
func TestBuiltByRun(t *testing.T) {
	for program, want := range map[string]bool{
		"/tmp/go-build1234/b001/exe/agentd":                                                   true,
		"/cache/bf/bfd94c3ecc67c8e43797066df720b0983dc0c4cb68e856bf94dab5f4ad4e36aa-d/agentd": true,
		"/tmp/go-build1234/b001/agentd.test":                                                  false,
		"/usr/local/bin/agentd":                                                               false,
		"/opt/exe/agentd":                                                                     false,
	} {
		if got := builtByRun(program); got != want {
			t.Errorf("%s: %v", program, got)
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	e := clitest.New(t, office)
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Client: "claude", Agent: "desk"}, `did you mean "claude-code"?`},
		{Request{Client: "cursor", Agent: "dsek"}, `did you mean "desk"?`},
		{Request{Client: "cursor"}, "which agent of the fleet office is it? It has clerk, desk"},
		{Request{Client: "cursor", Agent: "desk"}, `mcp.clients of desk has no "cursor"; it has claude-code, mine, codex`},
		{Request{Client: "cursor", Agent: "clerk", As: "Me"}, "no name of a client"},
		{Request{Client: "cursor", Agent: "clerk", HTTP: true}, "mcp.listen of clerk names no port"},
		{Request{Client: "cursor", Agent: "desk", As: "mine", HTTP: true}, "the token of mine is in a file"},
		{Request{Client: "codex", Agent: "desk", HTTP: true}, "mcp.clients of desk gives codex no token"},
	} {
		err := Install(&e.Env, c.r)
		if err == nil || !strings.Contains(err.Error(), c.want) || clitest.Code(err) != cli.ExitUsage {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
	// A file that cannot be changed stays, and what belongs in it is printed.
	file := filepath.Join(e.Dir, "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Install(&e.Env, Request{Client: "cursor", Agent: "clerk", File: file})
	if err == nil || !strings.Contains(err.Error(), "is left as it is") || !strings.Contains(e.Out.String(), `"--agent", "clerk"`) {
		t.Errorf("%v, %s", err, e.Out.String())
	}
	if text, _ := os.ReadFile(file); string(text) != `{"mcpServers": 1}` {
		t.Errorf("it has become %s", text)
	}
}
