package dev

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/fleet"
)

// mostSources bounds the files of one folder that are watched: one that has more holds data.
const mostSources = 2000

// A stamp tells whether a file was written, without reading it.
type stamp struct {
	at   time.Time
	size int64
}

// stamps are those of files, by path; a file that is not there has none.
type stamps map[string]stamp

// stampsOf are those of all files of a fleet.
func stampsOf(f *fleet.Fleet) stamps {
	all := stamps{}
	for i := range f.Members {
		for _, path := range filesOf(f, f.Members[i]) {
			all.add(path)
		}
	}
	return all
}

func (s stamps) add(path string) {
	if info, err := os.Stat(path); err == nil {
		s[path] = stamp{info.ModTime(), info.Size()}
	}
}

// differ reports whether a file was written, made or removed since before.
func (s stamps) differ(before stamps, path string) bool {
	now, is := s[path]
	then, was := before[path]
	return is != was || now.size != then.size || !now.at.Equal(then.at)
}

// filesOf are the files that a member depends on: those that a reload reads, and the sources
// of its skills, below its folder and around the program or script of each.
func filesOf(f *fleet.Fleet, m *fleet.Member) []string {
	all := f.Files(m)
	folders := []string{m.Dir}
	for _, s := range m.Agent.Skills {
		if s.Process == nil {
			continue
		}
		for _, word := range s.Process.Command {
			path := word
			if !filepath.IsAbs(path) {
				path = filepath.Join(s.Process.Dir, path)
			}
			info, err := os.Stat(path)
			switch {
			case err != nil || !below(f.Root, path):
			case info.IsDir(): // such as ./agents/reviewer of go run
				folders = append(folders, path)
			default:
				all = append(all, path)
				folders = append(folders, filepath.Dir(path))
			}
		}
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		all = append(all, sources(f.Root, folder)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func below(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// sources are the source files below a folder. The fleet's own folder counts without those
// below it: they are other agents'.
func sources(root, folder string) (all []string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read is not watched
		case len(all) >= mostSources:
			return fs.SkipAll
		case entry.IsDir() && path != folder && (folder == root || strings.HasPrefix(entry.Name(), ".") ||
			slices.Contains([]string{"node_modules", "__pycache__", "venv"}, entry.Name())):
			return fs.SkipDir
		case !entry.IsDir() && isSource(entry.Name()):
			all = append(all, path)
		}
		return nil
	})
	return all
}

func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".py", ".ts", ".mts", ".js", ".mjs", ".cjs", ".go", ".sh", ".bash", ".rb", ".pl", ".lua", ".php":
		return true
	}
	return false
}
