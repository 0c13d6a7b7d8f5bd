package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/skill/sandbox"
	"github.com/agentd/agentd/transport/nats"
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

// The files that a fleet names for its secrets are hidden, and what agentd trusts stays.
func TestSecretsOfAFleet(t *testing.T) {
	root := sandbox.Real(t.TempDir())
	file := func(name string) string {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mounted := file("mounted/..2026/identity.json")
	for link, target := range map[string]string{"..data": "..2026", "identity.json": "..data/identity.json"} {
		if err := os.Symlink(target, filepath.Join(root, "mounted", link)); err != nil {
			t.Fatal(err)
		}
	}
	context := file("config/nats/context/prod.json")
	if err := os.WriteFile(context, []byte(`{"creds": "~/prod.creds"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	shared := func(ref string) *fleet.PeerAuth { return &fleet.PeerAuth{Secrets: []fleet.SharedSecret{{Ref: ref}}} }
	m := &fleet.Member{
		Agent:     &fleet.AgentFile{Security: fleet.Security{KeyFile: filepath.Join(root, "mounted", "identity.json")}},
		SessionDB: file("sessions.db"), AuditDB: file("audit.db"),
		Peers: []*fleet.Peer{
			{Auth: shared("file:" + file("hmac"))}, {Auth: &fleet.PeerAuth{ClientSecretRef: "file:" + file("client")}},
			{Auth: shared("env:NAME"), Transports: []capability.TransportSpec{{Kind: capability.NATS, Servers: []string{"nats://u:${file:" + file("password") + "}@host"}}}},
		},
	}
	d := &Daemon{cfg: Config{
		Paths: Paths{State: file("state/x"), Runtime: file("run/x")},
		NATS: nats.Options{CredsFile: "~/agent.creds", CAFile: file("ca.pem"), KeyFile: file("key.pem"), Context: "prod", Getenv: func(name string) string {
			return map[string]string{"HOME": root, "XDG_CONFIG_HOME": filepath.Join(root, "config")}[name]
		}},
	}}
	s := d.secrets(&fleet.Fleet{
		Root: filepath.Join(root, "fleet"), Members: []*fleet.Member{m}, Hosts: []fleet.Host{{Bearer: "file:" + file("bearer")}},
		Identities: []fleet.Identity{{Auth: shared("file:" + file("identity-hmac"))}},
	})
	for _, path := range []string{
		mounted, filepath.Join(root, "mounted", "..later", "identity.json"), filepath.Join(root, "sessions.db-wal"), filepath.Join(root, "audit.db.key"),
		filepath.Join(root, "hmac"), filepath.Join(root, "client"), filepath.Join(root, "password"), filepath.Join(root, "bearer"),
		filepath.Join(root, "identity-hmac"), filepath.Join(root, "agent.creds"), filepath.Join(root, "prod.creds"), filepath.Join(root, "key.pem"), context,
	} {
		if !slices.ContainsFunc(s.all(), func(hidden string) bool { return below(hidden, path) }) {
			t.Errorf("a skill may read %s", path)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(root, "ca.pem"), sandbox.Real(program)} {
		granted := []fleet.SandboxPath{{Path: path}}
		if err := s.check("index", &fleet.Sandbox{Write: granted}); err == nil {
			t.Errorf("a skill may change %s", path)
		}
		if err := s.check("index", &fleet.Sandbox{Read: granted}); err != nil {
			t.Error(err)
		}
	}
}

// A skill cannot hide credentials from the search by what it writes.
func TestCredentialsAreFoundAroundWhatSkillsWrite(t *testing.T) {
	dir := sandbox.Real(t.TempDir())
	for _, folder := range []string{"data", "node_modules", "zone"} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, folder), 0o700), os.WriteFile(filepath.Join(dir, folder, "a.creds"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	writes := &fleet.Sandbox{Write: []fleet.SandboxPath{{Path: data}}}
	f := &fleet.Fleet{Members: []*fleet.Member{{Agent: &fleet.AgentFile{Skills: []fleet.Skill{{Sandbox: writes}}}}}}
	files, complete := credentialFiles(f, dir)
	if want := []string{filepath.Join(dir, "zone", "a.creds")}; !slices.Equal(files, want) || !complete {
		t.Errorf("%q, complete %v", files, complete)
	}
}
