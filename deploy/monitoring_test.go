package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/metrics"
)

// promtool runs Prometheus' own tool in a folder.
func promtool(t *testing.T, dir string, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian's package prometheus)")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Each alert fires from recorded series, and ends.
func TestAlerts(t *testing.T) {
	promtool(t, "prometheus", "check", "rules", "agentd.rules.yaml")
	promtool(t, "prometheus", "test", "rules", "agentd.test.yaml")
	rules, tests := read(t, "prometheus/agentd.rules.yaml"), read(t, "prometheus/agentd.test.yaml")
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) != 8 {
		t.Errorf("%d alerts, not those that the README lists", len(alerts))
	}
	for _, a := range alerts {
		if !strings.Contains(tests, "alertname: "+a[1]) || !strings.Contains(read(t, "README.md"), "`"+a[1]+"`") {
			t.Errorf("the alert %s is not tested, or not explained", a[1])
		}
	}
}

// The alert about latency fires for what /readyz and doctor say: when an objective is in danger is
// stated in the rules and in the program.
func TestObjective(t *testing.T) {
	rules := read(t, "prometheus/agentd.rules.yaml")
	bound := fmt.Sprintf("> %g * %g", metrics.BurnRate, metrics.SlowShare)
	for text, times := range map[string]int{
		metrics.SlowRequestsTotal: 2, "share5m " + bound: 1, "share1h " + bound: 1,
		fmt.Sprintf("[%gm]", metrics.ShortWindow.Minutes()): 2, fmt.Sprintf("[%gh]", metrics.LongWindow.Hours()): 2,
	} {
		if n := strings.Count(rules, text); n != times {
			t.Errorf("%q is there %d times, not %d: package metrics judges otherwise", text, n, times)
		}
	}
}

// A dashboard is a JSON file of Grafana, as far as it concerns agentd.
type dashboard struct {
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// queries returns the queries of the dashboard, without Grafana's variables.
func queries(t *testing.T) (all []string) {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana/agentd.json")), &d); err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, p := range d.Panels {
		if slices.Contains(ids, p.ID) || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: its id is another one's too, or it shows nothing", p.ID, p.Title)
		}
		ids = append(ids, p.ID)
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$__rate_interval", "5m", "$agent", ".+").Replace(target.Expr))
		}
	}
	return all
}

// The queries of the dashboard are ones that Prometheus can read.
func TestDashboard(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, q := range queries(t) {
		rules = append(rules, rule{"a:panel", q})
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "panels.json") // YAML 1.2 is a superset of JSON
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, ".", "check", "rules", "--lint=none", path)
}

// Alerts and dashboard ask for metrics that agents have, by labels that these have.
func TestMetricsOfAlertsAndDashboard(t *testing.T) {
	known := map[string][]string{}
	for _, m := range metrics.All() {
		labels := append([]string{metrics.LabelAgent, "instance", "job"}, m.Labels...)
		known[m.Name] = labels
		if m.Type == metrics.Histogram {
			known[m.Name+"_bucket"], known[m.Name+"_count"] = append(labels, "le"), labels
		}
	}
	text := strings.Join(queries(t), "\n") + regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(read(t, "prometheus/agentd.rules.yaml"), "")
	name := regexp.MustCompile(`\b((?:agentd|rpc)_[a-z0-9_]+[a-z0-9])\b(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`(\w+)\s*(?:=~|!=|!~|=)`)
	found := 0
	for _, m := range name.FindAllStringSubmatch(text, -1) {
		if m[1] == metrics.LabelMethod || m[1] == metrics.LabelRPCStatus {
			continue
		}
		labels, ok := known[m[1]]
		if !ok {
			t.Errorf("no agent has the metric %s", m[1])
		}
		found++
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, l[1]) {
				t.Errorf("%s has no label %s", m[1], l[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d uses of metrics were recognized", found)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
