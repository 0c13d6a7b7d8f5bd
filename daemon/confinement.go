package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/skill/sandbox"
)

// A confinement is what the programs of an agent's skills are confined with.
type confinement struct {
	layers  sandbox.Layers
	threads *sandbox.Threads // nil where the helper starts programs
	own     *place
	others  *place // for skills that run as other users; nil before the first
}

// Bounds of what is looked at to find files that no skill may read.
const (
	mostSystemFiles = 20_000
	mostOwnFiles    = 20_000
)

// openConfinement opens what skills are confined with, for an agent that has a skill that
// is a process: at its start, or at the reload that brings the first. switches is set for
// one that has a skill which runs as another user.
func (d *Daemon) openConfinement(ctx context.Context, switches bool) (*confinement, error) {
	if c := d.confinement.Load(); c != nil || !d.cfg.Confines {
		return d.openOthers(c, switches)
	}
	c := &confinement{layers: sandbox.Available()}
	var noThreads error
	if c.threads, noThreads = d.openThreads(ctx); noThreads != nil {
		// What answers from a thread is a helper. Another program would be run once more by
		// each call, in place of its skill.
		if err := sandbox.Probe(ctx); err != nil {
			return nil, fmt.Errorf("Config.Confines: %w", err)
		}
	}
	if !c.layers.Marks {
		return nil, nil // this system confines nothing; unconfined says so
	}
	if noThreads != nil {
		d.log.Warn("programs of skills are started by a helper process, which adds some milliseconds to each call", "error", noThreads)
	}
	var err error
	if c.own, err = d.openPlace(ownPlace, sandbox.OwnFolder, sandbox.OpenFolders); err != nil {
		return nil, err
	}
	d.confinement.Store(c)
	d.log.Info("skills are confined", "landlock", c.layers.Landlock, "seccomp", c.layers.Seccomp)
	return d.openOthers(c, switches)
}

// confine returns what holds the program of a skill, or nil. face is the URL of the API
// for skills, and user whom it runs as, or nil.
func (d *Daemon) confine(c *confinement, f *fleet.Fleet, m *fleet.Member, s fleet.Skill, user *sandbox.User, face string, system privateFiles) (*sandbox.Sandbox, error) {
	if c == nil {
		return nil, nil
	}
	box := &sandbox.Sandbox{Marks: d.descendants.Marks(), Folders: c.placeOf(user).folders, Threads: c.threads, Starts: d.cfg.starts}
	granted := s.Sandbox
	if granted == nil {
		granted = &fleet.Sandbox{}
	}
	if granted.Off {
		box.Policy.Off = true
		return box, nil
	}
	secrets := d.secrets(f)
	calls := make([]string, 0, len(c.places()))
	for _, p := range c.places() {
		secrets.kept = append(secrets.kept, p.base)
		calls = append(calls, p.calls)
	}
	if err := secrets.check(s.Name, granted); err != nil {
		return nil, err
	}
	port, err := portOf(face)
	if err != nil {
		return nil, err
	}
	policy := sandbox.Default(sandbox.Real(s.Process.Dir))
	policy.Face = port
	policy.User = user
	policy.Hidden = secrets.all()
	credentials, complete := credentialFiles(f, s.Process.Dir)
	if !complete {
		d.log.Warn("the skill may read files *.creds and *.nk that were not found: its folder holds too many files to search all",
			"skill", s.Name, "dir", s.Process.Dir, "most", mostOwnFiles, "remedy", "give it a folder of its own with dir")
	}
	// At each load: what has become private since the last one is, too.
	private, unseen := system()
	if len(unseen) > 0 {
		d.log.Warn("the skill may not read folders of the system that hold too many files to find those that are not for everybody",
			"skill", s.Name, "folders", unseen, "most", mostSystemFiles, "remedy", "name what it needs of them in sandbox.read")
	}
	policy.Apart = slices.Concat(private, calls, othersFolders(f, m, s.Process.Dir), credentials)
	policy.Limits = sandbox.Limits{
		MemoryBytes: uint64(granted.MemoryBytes), FileBytes: uint64(granted.FileBytes), //nolint:gosec // the load has checked that they are positive
		OpenFiles: uint64(granted.OpenFiles), CPUSeconds: uint64(granted.CPUSeconds), //nolint:gosec // as above
	}
	box.Policy = grant(policy, granted, nil)
	box.ByCapability = map[string]sandbox.Policy{}
	if m.Capabilities != nil {
		for _, offered := range m.Capabilities.Capabilities {
			if offered.Skill == s.Name && offered.Permissions != nil {
				box.ByCapability[offered.Name] = grant(policy, granted, offered.Permissions)
			}
		}
	}
	return box, nil
}

// grant adds to a policy what agent.yaml grants a skill, as far as the scopes that a
// capability declares go. Nil scopes are those of a capability that declares none: it has
// the default and all that is granted. docs/capabilities.md has the words.
func grant(p sandbox.Policy, granted *fleet.Sandbox, scopes []string) sandbox.Policy {
	needs := func(domains []string, verbs ...string) bool {
		return scopes == nil || slices.ContainsFunc(scopes, func(scope string) bool {
			domain, verb, _ := strings.Cut(scope, ":")
			return slices.Contains(domains, domain) && (len(verbs) == 0 || verb == "*" || slices.Contains(verbs, verb))
		})
	}
	files := []string{"filesystem", "file"}
	p.Read, p.Write = slices.Clone(p.Read), slices.Clone(p.Write)
	if needs(files, "read") {
		p.Read = append(p.Read, required(granted.Read)...)
	}
	if needs(files, "write") {
		p.Write = append(p.Write, required(granted.Write)...)
	}
	p.Execute = needs([]string{"compute"})
	p.Network = needs([]string{"network", "http", "email", "notify", "weather", "database"})
	p.Connect, p.Listen = slices.Concat(p.Connect, ports(granted.Connect)), ports(granted.Listen)
	if !p.Network {
		p.Connect, p.Listen = nil, nil
	}
	return p
}

// required returns granted paths without symbolic links: what check has seen. A skill that
// may write around one could lead others, or its own next call, elsewhere by a link.
func required(granted []fleet.SandboxPath) []sandbox.Path {
	paths := make([]sandbox.Path, len(granted))
	for i, g := range granted {
		paths[i] = sandbox.Path{Name: sandbox.Real(g.Path), Required: true, Fixed: true}
	}
	return paths
}

func ports(granted []int) []uint16 {
	all := make([]uint16, len(granted))
	for i, port := range granted {
		all[i] = uint16(port) //nolint:gosec // the load has checked its range
	}
	return all
}

// portOf returns the port of the API for skills; 0 for a program that may not use it.
func portOf(face string) (uint16, error) {
	if face == "" {
		return 0, nil
	}
	u, err := url.Parse(face)
	if err != nil {
		return 0, fmt.Errorf("the API for skills: %w", err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return 0, fmt.Errorf("the API for skills: %w", err)
	}
	return uint16(port), nil
}

// othersFolders are those of the other members: a skill reads the files of its own agent,
// and what the fleet shares. Where one folder holds another, both are the skill's.
func othersFolders(f *fleet.Fleet, m *fleet.Member, dir string) (folders []string) {
	own := []string{sandbox.Real(m.Dir), sandbox.Real(dir)}
	for _, other := range f.Members {
		folder := sandbox.Real(other.Dir)
		if other.ID != m.ID && !slices.ContainsFunc(own, func(o string) bool { return below(folder, o) }) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// credentialFiles finds credentials of NATS below a skill's folder, by their names. What
// skills may write is passed over: it is theirs, and many files there would hide those
// that come later from the search. It is not complete where there are too many elsewhere.
func credentialFiles(f *fleet.Fleet, dir string) (files []string, complete bool) {
	written := map[string]bool{}
	for _, m := range f.Members {
		for _, s := range m.Agent.Skills {
			if s.Sandbox != nil {
				for _, granted := range s.Sandbox.Write {
					written[sandbox.Real(granted.Path)] = true
				}
			}
		}
	}
	most := mostOwnFiles
	_ = filepath.WalkDir(sandbox.Real(dir), func(path string, entry fs.DirEntry, err error) error {
		if most--; most < 0 {
			return filepath.SkipAll
		}
		if err != nil {
			return nil // what agentd cannot read a skill cannot either
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && (name == "node_modules" || name == ".git" || written[path]):
			return filepath.SkipDir
		case filepath.Ext(name) == ".creds", filepath.Ext(name) == ".nk":
			files = append(files, sandbox.Real(path))
		}
		return nil
	})
	return files, most >= 0
}

// below reports whether a path is a folder or below it.
func below(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
