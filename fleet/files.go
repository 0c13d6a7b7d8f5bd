package fleet

import (
	"path/filepath"
	"slices"
)

// Files returns the absolute paths of all files that decide what a member does:
// those that were read, and those that a load would read if they were there.
// Each is listed once. Watch them to notice that a fleet must be loaded again.
func (f *Fleet) Files(m *Member) []string {
	all := []string{
		// Files that need not exist are listed too: creating one changes what a
		// load returns.
		filepath.Join(f.Root, ManifestName), filepath.Join(f.Root, IdentitiesName),
		m.Agent.Path, filepath.Join(m.Dir, "agent.yaml"), filepath.Join(m.Dir, "capabilities.yaml"), filepath.Join(m.Dir, "rpc-peers.yaml"),
	}
	if m.Capabilities != nil {
		all = append(all, f.abs(m.Capabilities.Path))
	}
	if m.PeersFile != "" {
		all = append(all, m.PeersFile)
	}
	all = append(all, m.EnvFiles()...)
	for _, a := range m.Agent.Security.Approvers {
		if a.KeyFile != "" {
			all = append(all, a.KeyFile)
		}
	}
	all = append(all, m.Agent.MCP.files()...)
	all = append(all, m.Agent.Control.files()...)
	all = append(all, m.Agent.Monitoring.files()...)
	for _, skill := range m.Agent.Skills {
		if skill.HTTP != nil {
			all = append(all, skill.HTTP.files()...)
		}
	}
	for _, use := range m.Agent.Uses {
		if use.Key == "mcp" {
			all = append(all, filepath.Join(m.Dir, "mcp.lock.json")) // of package registry/external
		}
	}
	for _, p := range m.Peers {
		if p.Document != nil {
			all = append(all, f.abs(p.Document.Path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// abs is the absolute path of a document, whose Path begins with the root as
// the fleet was loaded from it.
func (f *Fleet) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	rel, err := filepath.Rel(f.shown, path)
	if err != nil {
		rel = path
	}
	return filepath.Join(f.Root, rel)
}
