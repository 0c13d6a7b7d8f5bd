package capabilities

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

// genFleet has one member, in a folder that does not have its name.
const genFleet = `
-- fleet.yaml --
version: 1
name: t
agents: [{id: good, path: ./members/one}]
-- members/one/agent.yaml --
name: good
-- members/one/capabilities.yaml --
version: 1
agent: agent://good
transports: [{kind: memory, topics: {requests: r}}]
capabilities:
  - {name: echo, inputSchema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}}
  - {name: ping}
-- bad.yaml --
version: 1
agent: agent://bad
transports: [{kind: memory, topics: {requests: r}}]
capabilities: [{name: x, inputSchema: {type: objekt}}]
`

// gen generates below a folder of the fleet, by default in TypeScript.
func gen(t *testing.T, env *clitest.Env, r GenRequest) (stdout string, code int, err error) {
	t.Helper()
	env.Reset()
	if r.Lang == "" {
		r.Lang = "ts"
	}
	if r.Out == "" {
		r.Out = "generated"
	}
	r.Out = filepath.Join(env.Dir, r.Out)
	err = Gen(&env.Env, r)
	return env.Out.String(), clitest.Code(err), err
}

func TestGen(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, genFleet)
	out, code, err := gen(t, env, GenRequest{Peer: "good"})
	path := filepath.Join(env.Dir, "generated", "good.ts")
	if code != 0 || out != "✓ wrote "+path+" (2 capabilities)\n" {
		t.Fatalf("%q, status %d, %v", out, code, err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), "export type EchoRequest = {\n  text: string;\n};") {
		t.Errorf("%s, %v", content, err)
	}
	if strings.Contains(string(content), env.Dir) {
		t.Error("the file contains a path of this machine")
	}
	out, code, err = gen(t, env, GenRequest{Peer: "agent://good", Check: true})
	if code != 0 || out != "✓ up to date: "+path+" (2 capabilities)\n" {
		t.Errorf("%q, status %d, %v", out, code, err)
	}
	out, code, err = gen(t, env, GenRequest{File: filepath.Join(env.Dir, "members/one/capabilities.yaml"), Lang: "python", Out: "py", JSON: true})
	var result genResult
	if code != 0 || json.Unmarshal([]byte(out), &result) != nil || result.OutFile != filepath.Join(env.Dir, "py", "good.py") ||
		result.Peer != "good" || strings.Join(result.Capabilities, " ") != "echo ping" || result.UpToDate != nil {
		t.Errorf("%s, status %d, %v", out, code, err)
	}
}

func TestGenCheck(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, genFleet)
	check, write := GenRequest{Peer: "good", Lang: "go", Check: true}, GenRequest{Peer: "good", Lang: "go"}
	if _, code, err := gen(t, env, check); code != cli.ExitFinding || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("nothing there: status %d, %v", code, err)
	}
	if _, err := os.Stat(filepath.Join(env.Dir, "generated")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("--check wrote something")
	}
	if _, code, err := gen(t, env, write); code != 0 {
		t.Fatalf("status %d, %v", code, err)
	}
	path := filepath.Join(env.Dir, "generated", "good", "agent.go")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, code, err := gen(t, env, check); code != cli.ExitFinding || !strings.Contains(err.Error(), "is out of date") {
		t.Errorf("changed by hand: status %d, %v", code, err)
	}
	check.JSON = true
	out, code, err := gen(t, env, check)
	if code != cli.ExitFinding || !strings.Contains(out, `"upToDate": false`) || errors.Unwrap(err) != nil {
		t.Errorf("%s, status %d, %v", out, code, err)
	}
}

// A member whose fleet cannot be loaded is looked for where the sample has it.
func TestGenInBrokenFleet(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, genFleet)
	env.Write(t, "fleet.yaml", "version: 1\nname: t\nagents: [{id: good, path: ./nowhere}]\n")
	env.Write(t, "agents/good/capabilities.yaml", "version: 1\nagent: agent://good\ntransports: [{kind: memory, topics: {requests: r}}]\ncapabilities: [{name: only}]\n")
	if out, code, err := gen(t, env, GenRequest{Peer: "good"}); code != 0 || !strings.HasSuffix(out, "(1 capability)\n") {
		t.Errorf("%q, status %d, %v", out, code, err)
	}
}

func TestGenErrors(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, genFleet)
	for _, test := range []struct {
		request GenRequest
		code    int
		want    string
	}{
		{GenRequest{}, cli.ExitUsage, "either --peer"},
		{GenRequest{Peer: "a", File: "b"}, cli.ExitUsage, "either --peer"},
		{GenRequest{Peer: "../../etc"}, cli.ExitUsage, "--peer"},
		{GenRequest{Peer: "good", Lang: "perl"}, cli.ExitUsage, "known are ts, go, python"},
		{GenRequest{Peer: "nobody"}, cli.ExitFailed, filepath.Join("agents", "nobody", "capabilities.yaml") + ": no such file"},
		{GenRequest{File: "nowhere.yaml"}, cli.ExitFailed, "capabilities-gen: cannot read /"},
		{GenRequest{File: filepath.Join(env.Dir, "bad.yaml")}, cli.ExitFailed, "bad.yaml:4:"},
		{GenRequest{Peer: "good", Out: "fleet.yaml"}, cli.ExitFailed, "fleet.yaml"},
	} {
		out, code, err := gen(t, env, test.request)
		if code != test.code || err == nil || !strings.Contains(err.Error(), test.want) || out != "" {
			t.Errorf("%+v: %q, status %d, %v; want status %d and %q", test.request, out, code, err, test.code, test.want)
		}
	}
}
