package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/strictyaml"
)

// LoadOptions configure a load. The zero value is the safe choice: every
// schema is compiled and checked.
type LoadOptions struct {
	// InspectOnly leaves schemas uncompiled. Such a fleet cannot check
	// payloads, but a fleet with unusable schemas can still be listed and
	// edited.
	InspectOnly bool
	// Engines are the validators that agent.yaml can select besides the native
	// one. A file that selects another one fails the load.
	Engines []capability.Engine
	// SecondOpinion reviews the schemas of all files; see
	// [capability.LoadOptions].
	SecondOpinion capability.SecondOpinion
	// Actions are those that the program can run by itself. A file that names another one
	// without saying what runs it fails the load.
	Actions []KnownAction
}

// A NoFleetError reports that there is no fleet.yaml. It matches
// [fs.ErrNotExist].
type NoFleetError struct {
	// Dir is where the search began.
	Dir string
}

func (e *NoFleetError) Error() string {
	return fmt.Sprintf("no fleet.yaml found in %s or in any directory above it", e.Dir)
}

// Is reports whether target is [fs.ErrNotExist].
func (e *NoFleetError) Is(target error) bool { return target == fs.ErrNotExist }

// FindRoot returns the absolute path of the nearest directory, from dir
// upwards, that holds a fleet.yaml. The error is a [*NoFleetError] if there
// is none, or the operating system's where it cannot tell.
func FindRoot(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("fleet root: %w", err)
	}
	for at := abs; ; at = filepath.Dir(at) {
		info, err := os.Stat(filepath.Join(at, ManifestName))
		switch {
		case err == nil && !info.IsDir():
			return at, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR): // dir may be a file
			return "", fmt.Errorf("fleet root: %w", err)
		}
		if at == filepath.Dir(at) {
			return "", &NoFleetError{Dir: abs}
		}
	}
}

// Load reads the fleet.yaml in root and every file that it names. Faults show
// paths below root the way root was given: relative if it was.
//
// The error is a [*NoFleetError], a [*LoadError] with the faults of all
// files, or the operating system's error for a file that cannot be read.
func Load(root string, opts LoadOptions) (*Fleet, error) {
	p, err := newPaths(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoFleetError{Dir: root}
	}
	if err != nil {
		return nil, err
	}
	return load(p, opts, newCache())
}

// Reload loads the fleet again, with the options that it was loaded with. It reads every
// file, and parses and compiles those that have changed since this fleet was loaded; the two
// share the rest. Call it on the newest fleet: an older one shares less.
func (f *Fleet) Reload() (*Fleet, error) {
	p, err := newPaths(f.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoFleetError{Dir: f.Root}
	}
	if err != nil {
		return nil, err
	}
	p.shown = f.shown
	return load(p, f.opts, f.cache)
}

// load is Load with what the load before it has made.
func load(p paths, opts LoadOptions, before *cache) (*Fleet, error) {
	l := &loader{
		paths: p, opts: opts, before: before, now: newCache(),
		peers: make(map[string]peerList), views: make(map[view]peerList),
		pins: make(map[pin]*capability.Document), schemas: capability.NewSchemas(),
	}
	root := p.shown
	file, err := strictyaml.ReadFile(filepath.Join(p.root, ManifestName), p.name(filepath.Join(p.root, ManifestName)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoFleetError{Dir: root}
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	m := decodeManifest(file, p)
	l.readIdentities(m.fleet)
	// All members before any peers: a peer's capabilities may be those of a member
	// further down.
	for _, e := range m.entries {
		l.member(m.fleet, e)
	}
	for _, member := range m.fleet.Members {
		l.memberPeers(m.fleet, member)
		l.failed(member.checkWitnesses())
	}
	for _, member := range m.fleet.Members {
		l.selectEngine(member)
	}
	l.failed(m.fleet.checkBroker())
	l.failed(m.fleet.checkSandboxes())
	// Last, when both files that can hold a key are read.
	l.checkIdentities(m.fleet)
	if err := strictyaml.Join(append([]error{file.Err()}, l.errs...)...); err != nil {
		return nil, err
	}
	m.fleet.opts, m.fleet.cache = opts, l.now
	return m.fleet, nil
}

// loader reads the files that a manifest names, each of them once.
type loader struct {
	paths
	opts   LoadOptions
	before *cache // of the load before this one
	now    *cache
	errs   []error
	peers  map[string]peerList          // by absolute path; empty if it failed
	views  map[view]peerList            // peers, under another engine than the first
	pins   map[pin]*capability.Document // nil if it failed
	// schemas are those of all files. A load that takes a document again does not add its.
	schemas *capability.Schemas
}

// failed records an error, if there is one, so that the load can go on and
// report the faults of every file.
func (l *loader) failed(err error) bool {
	if err != nil {
		l.errs = append(l.errs, err)
	}
	return err != nil
}

// member reads one member's own files and adds it to the fleet. A member
// whose directory or environment is at fault is left out: nothing below it
// can be resolved.
func (l *loader) member(f *Fleet, e entry) {
	m := e.member
	for _, env := range f.Environments {
		if env.Name == m.Env {
			m.Environment = env
		}
	}
	if m.Environment == nil {
		// Where the file names no environment, the member's path is the nearest
		// place to point at.
		at := e.env
		if !at.Present() {
			at = e.path
		}
		names := make([]string, len(f.Environments))
		for i, env := range f.Environments {
			names[i] = env.Name
		}
		at.Fault(fmt.Sprintf("agent %q is in environment %q, which is not declared", m.ID, m.Env), spelling.DidYouMean(m.Env, names))
	}
	if m.Dir == "" || m.Environment == nil {
		return
	}
	if info, err := os.Stat(m.Dir); err != nil || !info.IsDir() {
		e.path.Fault(fmt.Sprintf("agent %q: there is no directory %s", m.ID, l.name(m.Dir)), "")
		return
	}
	l.agentFile(m, e.path)
	if path, ok := capability.Find(m.Dir); ok {
		doc, err := l.capabilities(path, m.Address)
		if !l.failed(err) {
			m.Capabilities = doc
		}
	}
	l.offer(m)
	f.Members = append(f.Members, m) // without an Agent only if the load fails
	f.members[m.ID] = m
}

// agentFile reads the member's agent.yaml. at is where fleet.yaml names the
// directory; a missing file is reported there.
func (l *loader) agentFile(m *Member, at strictyaml.Value) {
	path := findAgentFile(m.Dir)
	a, err := l.agent(m, path)
	if errors.Is(err, fs.ErrNotExist) {
		at.Fault(fmt.Sprintf("agent %q has no agent.yaml at %s", m.ID, l.name(path)), "")
		return
	}
	if !l.failed(err) {
		m.Agent = a
	}
}

// findAgentFile returns the path of the agent file in a directory: agent.yaml unless only
// one in JSON exists.
func findAgentFile(dir string) string {
	first := filepath.Join(dir, "agent.yaml")
	for _, path := range []string{first, filepath.Join(dir, "agent.json")} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return first
}

// A peerList holds the peers that a file declares. All members that read the file share
// it: copies would grow with the square of the fleet.
type peerList struct {
	all       []*Peer
	byAddress map[envelope.Address]*Peer
}

func (l peerList) give(m *Member) { m.Peers, m.peers = l.all, l.byAddress }

// memberPeers resolves a member's peers by the rule in the package comment.
func (l *loader) memberPeers(f *Fleet, m *Member) {
	path, ok := findPeers(m.Dir)
	if !ok && m.Environment.PeersRef != "" {
		path, ok = m.Environment.PeersRef, true
	}
	if !ok {
		path, ok = findPeers(f.Root)
	}
	if !ok {
		return
	}
	m.PeersFile = path
	l.peersFile(f, path).give(m)
}

// findPeers returns the path of the peers file in a directory, in the first
// notation that exists.
func findPeers(dir string) (path string, ok bool) {
	for _, name := range []string{"rpc-peers.yaml", "rpc-peers.yml", "rpc-peers.json"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
}

// peersFile reads a peers file, once for all members that share it, so that
// its faults are reported once too.
func (l *loader) peersFile(f *Fleet, path string) peerList {
	if list, ok := l.peers[path]; ok {
		return list
	}
	// Until it succeeds: members that share a faulty file must not report its
	// faults again.
	l.peers[path] = peerList{}
	entries, err := l.peerEntries(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = &strictyaml.Error{Faults: []Fault{{Position: Position{File: l.name(path)}, Message: "no peers config there, though an environment's peersRef names it"}}}
	}
	if l.failed(err) {
		return peerList{}
	}
	list := peerList{make([]*Peer, len(entries)), make(map[envelope.Address]*Peer, len(entries))}
	for i := range entries {
		peer := entries[i].Peer // a copy: fleets that share the entries have other members
		l.document(f, &peer, entries[i])
		list.all[i], list.byAddress[peer.Address] = &peer, &peer
	}
	l.peers[path] = list
	return list
}

// loadPin loads the capabilities file that a peers file names. A missing file
// is a fault of the peers file.
func (l *loader) loadPin(e peerEntry) error {
	// Two peers files may pin the same capabilities file.
	if _, ok := l.pins[e.pin]; ok {
		return nil
	}
	doc, err := l.capabilities(e.pin.path, e.pin.agent)
	var missing *capability.MissingError
	if errors.As(err, &missing) {
		e.pinAt.Fault(missing.Error(), "")
		err = nil
	}
	l.pins[e.pin] = doc
	return err
}

// document sets what is known of a peer's capabilities. A pinned file wins
// over the member's own: it is what the caller was built against.
func (l *loader) document(f *Fleet, peer *Peer, e peerEntry) {
	member, ok := f.Member(peer.Address.ID())
	peer.InFleet = ok
	peer.Foreign = !ok || member.Agent != nil && len(member.Agent.SkillFiles) > 0
	if e.pin.path != "" {
		peer.Document, peer.Pinned = l.pins[e.pin], true
		return
	}
	if ok {
		peer.Document = member.Capabilities
	}
}
