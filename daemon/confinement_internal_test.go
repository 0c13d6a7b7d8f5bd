package daemon

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/skill/sandbox"
)

// The words of permissions narrow what agent.yaml grants, and a capability without any has
// all of it.
func TestScopesNarrowASandbox(t *testing.T) {
	granted := &fleet.Sandbox{
		Read: []fleet.SandboxPath{{Path: "/r"}}, Write: []fleet.SandboxPath{{Path: "/w"}}, Connect: []int{5432}, Listen: []int{8080},
	}
	for _, test := range []struct {
		scopes                        []string
		read, write, network, execute bool
	}{
		{nil, true, true, true, true},
		{[]string{}, false, false, false, false},
		{[]string{"network:read"}, false, false, true, false},
		{[]string{"network:*"}, false, false, true, false},
		{[]string{"database:write"}, false, false, true, false},
		{[]string{"filesystem:read"}, true, false, false, false},
		{[]string{"file:write"}, false, true, false, false},
		{[]string{"filesystem:*"}, true, true, false, false},
		{[]string{"compute:execute", "secrets:read", "x-billing:refund"}, false, false, false, true},
	} {
		p := grant(sandbox.Default("/skill"), granted, test.scopes)
		has := func(paths []sandbox.Path, name string) bool {
			return slices.Contains(paths, sandbox.Path{Name: name, Required: true, Fixed: true})
		}
		connect, listen := slices.Contains(p.Connect, 5432) && slices.Contains(p.Connect, 443), slices.Contains(p.Listen, 8080)
		if has(p.Read, "/r") != test.read || has(p.Write, "/w") != test.write || p.Execute != test.execute ||
			p.Network != test.network || connect != test.network || listen != test.network {
			t.Errorf("%q: %+v", test.scopes, p)
		}
	}
}

// What is the operator's is granted to no skill, nor is a folder around it to be changed.
func TestSecretsAreNotGranted(t *testing.T) {
	root := sandbox.Real(t.TempDir())
	s := &secrets{folders: []string{filepath.Join(root, "state")}, files: []string{filepath.Join(root, "fleet", ".env")}, kept: []string{filepath.Join(root, "tmp", "builds")}}
	for _, test := range []struct{ verb, path, want string }{
		{"read", "state", "read " + filepath.Join(root, "state")},
		{"read", "state/fleet/a/identity.json", "read " + filepath.Join(root, "state")},
		{"read", ".", "read what is beside"},
		{"read", "fleet", ""}, // around the file
		{"read", "fleet/.env", "read " + filepath.Join(root, "fleet", ".env")},
		{"write", "fleet", "change " + filepath.Join(root, "fleet", ".env")},
		{"write", "state/x", "change " + filepath.Join(root, "state")},
		{"write", ".", "change " + filepath.Join(root, "state")},
		{"write", "fleet/data", ""},
		{"write", "tmp", "change " + filepath.Join(root, "tmp", "builds")},
		{"read", "tmp", ""},
		{"read", "other", ""},
	} {
		granted := []fleet.SandboxPath{{Path: filepath.Join(root, test.path), Position: fleet.Position{File: "agent.yaml", Line: 7}}}
		box := &fleet.Sandbox{Read: granted}
		if test.verb == "write" {
			box = &fleet.Sandbox{Write: granted}
		}
		err := s.check("index", box)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "agent.yaml:7")) {
			t.Errorf("%s %s: %v", test.verb, test.path, err)
		}
	}
}
