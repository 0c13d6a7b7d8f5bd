package fleet_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// watched is a fleet whose concierge has a pinned peer and .env files, and whose
// reviewer shares the root's peers file.
func watched() files {
	return starter().with(files{
		"agents/concierge/rpc-peers.yaml": strings.Replace(starter()["rpc-peers.yaml"], "    transports:", "    capabilities: ../../pins/reviewer.yaml\n    transports:", 1),
		"pins/reviewer.yaml":              capabilitiesOf("pr-reviewer", "review-pr"),
	})
}

func TestFiles(t *testing.T) {
	f := watched().load(t)
	for id, want := range map[string][]string{
		"concierge": {
			".env",
			"agents/concierge/agent.yaml",
			"agents/concierge/capabilities.yaml", // is not there, and would be read if it were
			"agents/concierge/rpc-peers.yaml",
			"fleet.yaml",
			"identities.yaml", // is not there either
			"pins/reviewer.yaml",
		},
		"pr-reviewer": {
			".env",
			"agents/pr-reviewer/agent.yaml",
			"agents/pr-reviewer/capabilities.yaml",
			"agents/pr-reviewer/rpc-peers.yaml", // would replace the root's
			"fleet.yaml",
			"identities.yaml",
			"rpc-peers.yaml",
		},
	} {
		m, _ := f.Member(id)
		var got []string
		for _, path := range f.Files(m) {
			rel, err := filepath.Rel(f.Root, path)
			if err != nil || !filepath.IsAbs(path) {
				t.Errorf("%s: %s: %v", id, path, err)
			}
			got = append(got, filepath.ToSlash(rel))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%q\nwant\n%q", id, got, want)
		}
	}
}

// However the root is given, the files are the same.
func TestFilesFromAnywhere(t *testing.T) {
	root := watched().root(t)
	t.Chdir(filepath.Join(root, "agents"))
	var want []string
	for _, given := range []string{root, "..", "../agents/..", "../../" + filepath.Base(root)} {
		f, err := fleet.Load(given, fleet.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, _ := f.Member("concierge")
		got := f.Files(m)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %s: got\n%q\nwant\n%q", given, got, want)
		}
	}
}
