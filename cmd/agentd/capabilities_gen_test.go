package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/output"
)

// gen runs `capabilities gen` alone in the working directory.
func gen(t *testing.T, args ...string) (stdout string, code int, err error) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	a := &app{stdout: &out, stderr: &diagnostics, getenv: func(string) string { return "" }, output: output.Table, logFormat: "text"}
	cmd := a.capabilitiesGenCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&diagnostics)
	cmd.SetErr(&diagnostics)
	err = cmd.ExecuteContext(t.Context())
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case err != nil:
		code = exitFailed
	}
	return out.String(), code, err
}

// fleetDir is a fleet of one member, in a folder of its own name, and makes it
// the working directory.
func fleetDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"fleet.yaml":             "version: 1\nname: t\nagents: [{id: good, path: ./members/one}]\n",
		"members/one/agent.yaml": "name: good\n",
		"members/one/capabilities.yaml": `version: 1
agent: agent://good
transports: [{kind: memory, topics: {requests: r}}]
capabilities:
  - {name: echo, inputSchema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}}
  - {name: ping}
`,
		"bad.yaml": `version: 1
agent: agent://bad
transports: [{kind: memory, topics: {requests: r}}]
capabilities: [{name: x, inputSchema: {type: objekt}}]
`,
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	real, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func TestCapabilitiesGen(t *testing.T) {
	dir := fleetDir(t)
	out, code, err := gen(t, "--peer", "good")
	path := filepath.Join(dir, "generated", "good.ts")
	if code != 0 || out != "✓ wrote "+path+" (2 capabilities)\n" {
		t.Fatalf("%q, status %d, %v", out, code, err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), "export type EchoRequest = {\n  text: string;\n};") {
		t.Errorf("%s, %v", content, err)
	}
	if strings.Contains(string(content), dir) {
		t.Error("the file holds a path of this machine")
	}
	out, code, err = gen(t, "--peer", "agent://good", "--check")
	if code != 0 || out != "✓ up to date: "+path+" (2 capabilities)\n" {
		t.Errorf("%q, status %d, %v", out, code, err)
	}
	out, code, err = gen(t, "--capabilities", "members/one/capabilities.yaml", "--lang", "python", "--out", "py", "--json")
	var summary capabilitiesGenResult
	if code != 0 || json.Unmarshal([]byte(out), &summary) != nil || summary.OutFile != filepath.Join(dir, "py", "good.py") ||
		summary.Peer != "good" || strings.Join(summary.Capabilities, " ") != "echo ping" || summary.UpToDate != nil {
		t.Errorf("%s, status %d, %v", out, code, err)
	}
}

func TestCapabilitiesGenCheck(t *testing.T) {
	dir := fleetDir(t)
	path := filepath.Join(dir, "generated", "good", "agent.go")
	if _, code, err := gen(t, "--peer", "good", "--lang", "go", "--check"); code != exitFinding || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("nothing there: status %d, %v", code, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "generated")); !errors.Is(err, os.ErrNotExist) {
		t.Error("--check wrote something")
	}
	if _, code, err := gen(t, "--peer", "good", "--lang", "go"); code != 0 {
		t.Fatalf("status %d, %v", code, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, code, err := gen(t, "--peer", "good", "--lang", "go", "--check"); code != exitFinding || !strings.Contains(err.Error(), "is out of date") {
		t.Errorf("changed by hand: status %d, %v", code, err)
	}
	out, code, _ := gen(t, "--peer", "good", "--lang", "go", "--check", "--json")
	if code != exitFinding || !strings.Contains(out, `"upToDate": false`) {
		t.Errorf("%s, status %d", out, code)
	}
}

func TestCapabilitiesGenRefuses(t *testing.T) {
	fleetDir(t)
	tests := []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "either --peer"},
		{[]string{"--peer", "a", "--capabilities", "b"}, exitUsage, "either --peer"},
		{[]string{"--peer", "../../etc"}, exitUsage, "--peer"},
		{[]string{"--peer", "good", "--lang", "perl"}, exitUsage, "known are ts, go, python"},
		{[]string{"--peer", "nobody"}, exitFailed, filepath.Join("agents", "nobody", "capabilities.yaml") + ": no such file"},
		{[]string{"--capabilities", "nowhere.yaml"}, exitFailed, "capabilities-gen: cannot read /"},
		{[]string{"--capabilities", "bad.yaml"}, exitFailed, "bad.yaml:4:"},
		{[]string{"--peer", "good", "--out", "fleet.yaml"}, exitFailed, "fleet.yaml"},
	}
	for _, tt := range tests {
		out, code, err := gen(t, tt.args...)
		if code != tt.code || err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%q: %q, status %d, %v; want status %d and %q", tt.args, out, code, err, tt.code, tt.want)
		}
	}
}
