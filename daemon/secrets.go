package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/skill/sandbox"
)

// secrets are what no skill may read or change, whatever agent.yaml grants.
type secrets struct {
	folders []string // of the state and of sockets, also of other fleets
	files   []string
	kept    []string // what may be read, and not be changed
	root    string   // of the fleet
}

// secrets lists what is the operator's in a fleet.
func (d *Daemon) secrets(f *fleet.Fleet) *secrets {
	s := &secrets{root: sandbox.Real(f.Root)}
	for _, folder := range []string{d.cfg.Paths.State, d.cfg.Paths.Runtime} {
		s.folders = append(s.folders, sandbox.Real(folder))
		// Where a fleet has its folder beside those of others, all of them.
		if parent := filepath.Dir(folder); strings.HasPrefix(filepath.Base(parent), "agentd") && !below(parent, f.Root) {
			s.folders = append(s.folders, sandbox.Real(parent))
		}
	}
	// What comes after an upgrade is the next program that runs without a sandbox.
	if program, err := os.Executable(); err == nil {
		s.kept = append(s.kept, sandbox.Real(program))
	}
	s.add(d.cfg.NATS.SecretFiles()...)
	for _, file := range []string{d.cfg.NATS.CAFile, d.cfg.NATS.CertFile} {
		if file != "" {
			s.kept = append(s.kept, sandbox.Real(file))
		}
	}
	for _, h := range f.Hosts {
		s.add(secretref.Files(h.Bearer)...)
	}
	for _, id := range f.Identities {
		s.addAuth(id.Auth)
	}
	for _, env := range f.Environments {
		s.add(env.EnvFiles...)
		s.add(env.SecretsRef)
		for _, o := range env.Overrides {
			s.add(o.EnvFiles...)
		}
	}
	read := map[string]bool{} // members share peers files
	for _, m := range f.Members {
		s.addMember(m)
		if !read[m.PeersFile] {
			read[m.PeersFile] = true
			s.addPeers(m)
		}
	}
	slices.Sort(s.files)
	s.files = slices.Compact(s.files)
	return s
}

// addMember adds the files of a member that its files name.
func (s *secrets) addMember(m *fleet.Member) {
	for _, database := range []string{m.AuditDB, m.SessionDB} {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".key", ".pub", ".checkpoint"} {
			if database != "" {
				s.add(database + suffix)
			}
		}
	}
	s.add(m.Agent.Security.KeyFile)
	s.add(m.Agent.MCP.SecretFiles()...)
	s.add(m.Agent.Control.SecretFiles()...)
	s.add(m.Agent.Monitoring.SecretFiles()...)
	for _, skill := range m.Agent.Skills {
		if skill.Action != nil {
			s.add(referredFiles([]byte(skill.Action.Config))...)
		}
		if skill.HTTP != nil {
			s.add(skill.HTTP.SecretFiles()...)
			for _, file := range []string{skill.HTTP.TLS.CA, skill.HTTP.TLS.Cert} {
				if file != "" {
					s.kept = append(s.kept, sandbox.Real(file))
				}
			}
		}
	}
	for _, server := range m.Agent.MCPServers {
		for _, c := range server.Credentials {
			s.add(secretref.Files(c.SecretRef)...)
		}
		if server.OAuth != nil {
			for _, ref := range server.OAuth.Refs() {
				s.add(secretref.Files(ref)...)
			}
		}
		if server.Process != nil {
			for _, kv := range server.Process.Env {
				_, value, _ := strings.Cut(kv, "=")
				s.add(secretref.Files(value)...)
			}
		}
	}
	for _, use := range m.Agent.Uses {
		s.add(referredFiles(use.Config)...)
	}
	if m.Capabilities != nil {
		s.addServers(m.Capabilities.Transports)
	}
}

// addPeers adds the files that the member's peers file names.
func (s *secrets) addPeers(m *fleet.Member) {
	for _, p := range m.Peers {
		s.addAuth(p.Auth)
		s.addServers(p.Transports)
	}
}

// addServers adds the files with the passwords of brokers.
func (s *secrets) addServers(specs []capability.TransportSpec) {
	for _, spec := range specs {
		if spec.Kind != capability.NATS {
			continue
		}
		for _, server := range spec.Servers {
			s.add(secretref.Files(server)...)
		}
	}
}

// addAuth adds the files of the secrets that an agent shares with another.
func (s *secrets) addAuth(a *fleet.PeerAuth) {
	if a == nil {
		return
	}
	s.add(secretref.Files(a.ClientSecretRef)...)
	for _, secret := range a.Secrets {
		s.add(secretref.Files(secret.Ref)...)
	}
}

func (s *secrets) add(paths ...string) {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		s.files = append(s.files, sandbox.Real(path))
		// Kubernetes mounts secrets as links to a folder of another name with each change.
		if folder := filepath.Dir(path); exists(filepath.Join(folder, "..data")) && !below(sandbox.Real(folder), s.root) {
			s.files = append(s.files, sandbox.Real(folder))
		}
	}
}

func (s *secrets) all() []string { return slices.Concat(s.folders, s.files) }

// check refuses grants that would open what is secret. A folder above a secret can be
// read around it, and not be changed around it.
func (s *secrets) check(skill string, granted *fleet.Sandbox) error {
	var faults []strictyaml.Fault
	refuse := func(g fleet.SandboxPath, verb, what string) {
		faults = append(faults, g.Position.Fault(
			fmt.Sprintf("the skill %q could %s %s, which no skill may", skill, verb, what), "name a folder that is apart from it"))
	}
	for _, g := range granted.Read {
		path := sandbox.Real(g.Path)
		for _, secret := range s.all() {
			if below(secret, path) {
				refuse(g, "read", secret)
				break
			}
		}
		for _, folder := range s.folders {
			if path != folder && below(path, folder) {
				refuse(g, "read what is beside", folder)
			}
		}
	}
	for _, g := range granted.Write {
		path := sandbox.Real(g.Path)
		for _, secret := range slices.Concat(s.all(), s.kept) {
			if below(secret, path) || below(path, secret) {
				refuse(g, "change", secret)
				break
			}
		}
	}
	if faults == nil {
		return nil
	}
	return &strictyaml.Error{Faults: faults}
}
