package metrics_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/metrics"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

// docs/metrics.md has the table of the metrics as names.go has it.
func TestPage(t *testing.T) {
	const file, begin, end = "../../docs/metrics.md", "<!-- begin metrics -->\n", "<!-- end metrics -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no %s… %s", file, begin, end)
	}
	want := before + begin + metrics.Page() + end + after
	switch {
	case string(text) == want:
	case *update:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: go test ./daemon/metrics -run Page -update", file)
	}
}

// Names say their unit and type as Prometheus has it, and none is used twice.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range metrics.All() {
		if seen[m.Name] || m.Help == "" || m.Source == "" || !strings.HasPrefix(m.Name, "agentd_") && !strings.HasPrefix(m.Name, "rpc_") && !strings.HasPrefix(m.Name, "gen_ai_") {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
		unit := strings.TrimSuffix(m.Name, "_total")
		if (m.Type == metrics.Counter) != strings.HasSuffix(m.Name, "_total") || m.Unit != "" && !strings.HasSuffix(unit, "_"+m.Unit) {
			t.Errorf("%s: type %s, unit %q", m.Name, m.Type, m.Unit)
		}
	}
}
