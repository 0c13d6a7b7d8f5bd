package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/skill/sandbox"
)

// A confined server reads what it was given and nothing else, and what it leaves running ends
// with it, whatever its process group and session.
func TestConfined(t *testing.T) {
	if layers := sandbox.Available(); layers.Landlock == 0 || !layers.Marks {
		t.Skipf("this kernel cannot hold a program to %s", strings.Join(layers.Missing(), ", "))
	}
	t.Setenv("TMPDIR", "/tmp") // not a folder that programs may read, such as one below /dev
	family, err := descendants.NewFamily(false)
	if err != nil {
		t.Fatal(err)
	}
	member := family.Member()
	folder := filepath.Join(t.TempDir(), "calls")
	if err := sandbox.OwnFolder(folder); err != nil {
		t.Fatal(err)
	}
	folders, err := sandbox.OpenFolders(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer folders.Close()
	given, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	for _, path := range []string{filepath.Join(given, "file"), secret} {
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy := sandbox.Default(sandbox.Real(given))
	policy.Execute = true
	o := command(t, "library")
	o.Command.Dir = given
	o.Command.Sandbox = &sandbox.Sandbox{Policy: policy, Marks: member.Marks(), Folders: folders}
	o.Command.Descendants = member
	if o.Command.Args[0], err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	pin(t, &o)
	c := start(t, o)
	read := func(path string) string {
		args, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		return mustCall(t, c, "read", string(args)).Content[0].(*mcp.TextContent).Text
	}
	if got := read(filepath.Join(given, "file")); got != "text" {
		t.Errorf("the server may read a file, and does not: %s", got)
	}
	if got := read(secret); !strings.Contains(got, "permission denied") {
		t.Errorf("the server may not read a file, and got: %s", got)
	}
	pid, err := strconv.Atoi(mustCall(t, c, "leave", `{}`).Content[0].(*mcp.TextContent).Text)
	if err != nil {
		t.Fatal(err)
	}
	if !runs(pid) {
		t.Fatal("the server has left nothing")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return !runs(pid) })
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("temporary folders are left: %v, %v", left, err)
	}
}

// runs reports whether a process runs; a zombie does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}
