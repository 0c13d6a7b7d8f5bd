package fleet

import (
	"path/filepath"
	"slices"
)

// Files are the absolute paths of everything that decides about a member: what was
// read, and what would be if it were there. Each stands once.
func (f *Fleet) Files(m *Member) []string {
	all := []string{
		filepath.Join(f.Root, ManifestName), filepath.Join(f.Root, IdentitiesName),
		m.Agent.Path, filepath.Join(m.Dir, "capabilities.yaml"), filepath.Join(m.Dir, "rpc-peers.yaml"),
	}
	if m.Capabilities != nil {
		all = append(all, f.abs(m.Capabilities.Path))
	}
	if m.PeersFile != "" {
		all = append(all, m.PeersFile)
	}
	all = append(all, m.EnvFiles()...)
	for _, p := range m.Peers {
		if p.Document != nil {
			all = append(all, f.abs(p.Document.Path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// abs is the path of a document, which may be named from the root.
func (f *Fleet) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.Root, path)
}
