package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// Three public keys; nobody has their private halves. The last one is of a security key.
const (
	annKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPOg1eJh8ZKvhdl1/kahgdCWxfYDfEVsPlqnvVvwCiWT"
	bobKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBFMY2xGEe6zTPc4MPSBCUlIK8/kKjCDZVhdbRUtzfVp"
	eveKey = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIPOg1eJh8ZKvhdl1/kahgdCWxfYDfEVsPlqnvVvwCiWTAAAABHNzaDo="
)

func TestApprovers(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "eve.pub")
	if err := os.WriteFile(elsewhere, []byte(eveKey+" eve@laptop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := starter().with(files{
		"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\nsecurity:\n  approvers:\n    - {name: ann@example.org, key: " + annKey + " ann@laptop}\n" +
			"    - {name: bob, keyFile: keys/bob.pub}\n    - {name: ann@example.org, keyFile: " + elsewhere + "}\n",
		"keys/bob.pub": bobKey + "\n",
	}).root(t)
	f, err := fleet.Load(root, plugged())
	if err != nil {
		t.Fatal(err)
	}
	m, _ := f.Member("pr-reviewer")
	var got []string
	for _, a := range m.Agent.Security.Approvers {
		got = append(got, a.Name+" "+a.Key)
	}
	if want := []string{"ann@example.org " + annKey, "bob " + bobKey, "ann@example.org " + eveKey}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if keys := m.Agent.Security.ApproverKeys(); len(keys) != 3 || keys[1].Name != "bob" || !strings.HasPrefix(keys[2].Fingerprint(), "SHA256:") {
		t.Errorf("keys %+v", keys)
	}
	// A changed key is noticed like any other change.
	for _, path := range []string{filepath.Join(f.Root, "keys", "bob.pub"), elsewhere} {
		if !slices.Contains(f.Files(m), path) {
			t.Errorf("%s is not watched", path)
		}
	}
}

func TestFaultyApprovers(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 16<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ list, pointer, says string }{
		{"[]", "", "approver"},
		{"[{name: ann}]", "/0", "either key or keyFile"},
		{"[{name: ann, key: " + annKey + ", keyFile: x}]", "/0", "either key or keyFile"},
		{"[{key: " + annKey + "}]", "/0", "name"},
		{"[{name: 'ann smith', key: " + annKey + "}]", "/0/name", "cannot name an approver"},
		{"[{name: 'ann*', key: " + annKey + "}]", "/0/name", "cannot name an approver"},
		{"[{name: " + strings.Repeat("a", 129) + ", key: " + annKey + "}]", "/0/name", "cannot name an approver"},
		{"[{name: ann, key: AAAA}]", "/0/key", "not a public key of SSH"},
		{"[{name: ann, key: 'restrict " + annKey + "'}]", "/0/key", "have no effect"},
		{"[{name: ann, keyFile: nowhere.pub}]", "/0/keyFile", "no such file"},
		{"[{name: ann, keyFile: ../x.pub}]", "/0/keyFile", "out of the fleet's root"},
		{"[{name: ann, keyFile: " + large + "}]", "/0/keyFile", "bytes"},
		{"[{name: ann, key: " + annKey + "}, {name: bob, key: " + annKey + " again}]", "/1", "listed before, as that of ann"},
		{"[{name: ann, key: " + annKey + ", role: boss}]", "/0/role", "role"},
	} {
		_, err := agentWith(t, "security: {approvers: "+tt.list+"}")
		var le *fleet.LoadError
		if !errors.As(err, &le) || len(le.Faults) != 1 || le.Faults[0].Pointer != "/security/approvers"+tt.pointer || le.Faults[0].Line != 2 ||
			!strings.Contains(le.Faults[0].Message+le.Faults[0].Hint, tt.says) {
			t.Errorf("%.80s: %v", tt.list, err)
		}
	}
}

// Rules about calls that are served stand under ask alone, and decide about nothing else.
func TestServeRules(t *testing.T) {
	for text, calls := range map[string]bool{
		"ask: ['ServeAgent:agent://*/pay']":                                 false,
		"ask: ['ServeAgent:**', 'RequestAgent:agent://a/b']":                true,
		"ask: ['ServeAgent:**'], allow: []":                                 true,
		"ask: ['ServeAgent:**'], deny: ['RequestAgent:agent://payments/*']": true,
		"ask: []": true,
		"":        true,
	} {
		a, err := agentWith(t, "permissions: {"+text+"}")
		if err != nil || a.Permissions.Calls() != calls || len(a.Permissions.Serve) != strings.Count(text, "Serve") || len(a.Permissions.Ask) != strings.Count(text, "agent://a/b") {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	if (*fleet.Permissions)(nil).Calls() {
		t.Error("no block has rules")
	}
	for text, want := range map[string][2]string{
		"ask: ['ServeAgent:agent://a']":     {"/permissions/ask/0", "would match nothing"},
		"ask: ['ServeAgent:agent://a/b/c']": {"/permissions/ask/0", "would match nothing"},
		"ask: ['serveagent:**']":            {"/permissions/ask/0", "with a colon"},
		"ask: ['ServeAgents:**']":           {"/permissions/ask/0", "with a colon"},
		"deny: ['ServeAgent:agent://a/b']":  {"/permissions/deny/0", "callers"},
		"allow: ['ServeAgent:agent://a/b']": {"/permissions/allow/0", "callers"},
		"ask: ['Bash:*']":                   {"/permissions/ask/0", "would protect nothing"},
	} {
		_, err := agentWith(t, "permissions: {"+text+"}")
		wantFault(t, err, want[0], want[1])
	}
}
