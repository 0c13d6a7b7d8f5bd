package fleet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// A cache has what a load made of the files of a fleet, for the load after it: of a thousand
// agents, one has usually changed. Every load reads all files. What was made of a file is
// taken again only if the file has the same bytes, whatever its times say, and was read under
// the same name for the same agent, and if what else its reading asked of the disk has the
// same answer. The options are the same: a fleet is loaded again with its own.
//
// What a cache holds is immutable and shared by the fleets. A cache has only what its own
// load has used, so that nothing outlives the fleets that need it. Files with faults are not
// in it: they are read again.
type cache struct {
	documents map[pin]made[*capability.Document]
	agents    map[agentKey]made[*AgentFile]
	peers     map[string]made[[]peerEntry] // by absolute path
	engines   map[engined]*capability.Document
}

func newCache() *cache {
	return &cache{
		documents: make(map[pin]made[*capability.Document]), agents: make(map[agentKey]made[*AgentFile]),
		peers: make(map[string]made[[]peerEntry]), engines: make(map[engined]*capability.Document),
	}
}

// agentKey is what decides, besides its text, what an agent.yaml says.
type agentKey struct{ path, id, dir string }

// made is what was made of a file.
type made[T any] struct {
	sum   [sha256.Size]byte // of the file
	links []string          // paths that it names; the root holds them, whatever links lead there
	value T
}

// again returns what was made of the same text before, if it would be made of it now.
func again[K comparable, T any](p paths, before map[K]made[T], key K, sum [sha256.Size]byte) (made[T], bool) {
	known, ok := before[key]
	if !ok || known.sum != sum {
		return known, false
	}
	for _, path := range known.links {
		if !p.linksStayInside(path) {
			return known, false
		}
	}
	return known, true
}

// capabilities reads the capabilities file at path, which must declare agent. The error is
// that of [capability.LoadWith].
func (l *loader) capabilities(path string, agent envelope.Address) (*capability.Document, error) {
	opts := l.capabilityOptions(path, agent)
	src, err := strictyaml.ReadSource(path, opts.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &capability.MissingError{Path: opts.Name}
	}
	if err != nil {
		return nil, fmt.Errorf("capabilities config: %w", err)
	}
	key, sum := pin{path, agent}, sha256.Sum256(src)
	out, ok := again(l.paths, l.now.documents, key, sum) // a peers file may pin that of a member
	if !ok {
		out, ok = again(l.paths, l.before.documents, key, sum)
	}
	if !ok {
		doc, err := capability.Parse(opts.Name, src, opts)
		if err != nil {
			return nil, err
		}
		out = made[*capability.Document]{sum: sum, value: doc}
	}
	l.now.documents[key] = out
	return out.value, nil
}

// agent reads a member's agent.yaml at path. Faults are in the error.
func (l *loader) agent(m *Member, path string) (*AgentFile, error) {
	src, err := strictyaml.ReadSource(path, l.name(path))
	if err != nil {
		return nil, err
	}
	key, sum := agentKey{path, m.ID, m.Dir}, sha256.Sum256(src)
	out, ok := again(l.paths, l.before.agents, key, sum)
	if !ok {
		file, err := strictyaml.Parse(l.name(path), src)
		if err != nil {
			return nil, err
		}
		out.sum, out.links = sum, nil
		p := l.paths
		p.asked = &out.links
		out.value = decodeAgent(file, m.ID, p, actionOptions{
			known: l.opts.Actions, dir: m.Dir, schemas: l.capabilityOptions(path, m.Address),
		})
		out.value.Path = path
		if err := file.Err(); err != nil {
			return nil, err
		}
	}
	// The key of an approver is in a file of its own.
	if !slices.ContainsFunc(out.value.Security.Approvers, func(a Approver) bool { return a.KeyFile != "" }) {
		l.now.agents[key] = out
	}
	return out.value, nil
}

// peerEntries reads a peers file with the files that it pins.
func (l *loader) peerEntries(path string) ([]peerEntry, error) {
	src, err := strictyaml.ReadSource(path, l.name(path))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(src)
	if known, ok := again(l.paths, l.before.peers, path, sum); ok {
		l.now.peers[path] = known
		return known.value, nil
	}
	file, err := strictyaml.Parse(l.name(path), src)
	if err != nil {
		return nil, err
	}
	entries := decodePeers(file, path, l.paths)
	var pins []error
	for _, e := range entries {
		if e.pin.path != "" {
			pins = append(pins, l.loadPin(e))
		}
	}
	if err := strictyaml.Join(append([]error{file.Err()}, pins...)...); err != nil {
		return nil, err
	}
	if pins == nil { // a pinned file may be gone the next time, which is a fault at its place here
		for i := range entries {
			entries[i].pinAt = strictyaml.Value{} // it holds the whole file
		}
		l.now.peers[path] = made[[]peerEntry]{sum: sum, value: entries}
	}
	return entries, nil
}
