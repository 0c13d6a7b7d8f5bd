package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// An alertRule is an alert of deploy/prometheus, as far as one scrape can tell whether it would
// fire: whether it lasts is left out. A metric that has another name in the rules than in the
// program does not fire.
type alertRule struct {
	Alert, Record, Expr string
	recorded            map[string]string // the expressions of what it reads that is recorded
}

// readRules returns the alerts by name.
func readRules(t *testing.T) map[string]alertRule {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "agentd.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alertRule } }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	all, recorded := map[string]alertRule{}, map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.recorded = recorded; r.Record != "" {
				recorded[r.Record] = r.Expr
				continue
			}
			all[r.Alert] = r
		}
	}
	return all
}

// fires reports whether the alert would fire for an agent, given the page of its metrics, if that
// lasted. A time counts up to its bound: any fires here.
func (r alertRule) fires(t *testing.T, page, agent string) (fires bool, value float64) {
	t.Helper()
	// comparison is `metric{labels} > n`, or the sum of such; burning is `share > n * m` of two windows,
	// and slowShare what the share is.
	comparison := regexp.MustCompile(`^(?:sum by \([^)]*\) \()?(\w+(?:\{[^}]*\})?)\)? (==|>) ([0-9.]+)$`)
	burning := regexp.MustCompile(`^([\w:]+) > ([0-9.]+) \* ([0-9.]+) and [\w:]+ > ([0-9.]+) \* ([0-9.]+)$`)
	slowShare := regexp.MustCompile(`^sum by \(agent, capability\) \(rate\((\w+)\[\w+\]\)\)\s+/ sum by \(agent, capability\) \(rate\((\w+\{[^}]*\})\[\w+\]\)\)$`)
	if m := burning.FindStringSubmatch(r.Expr); m != nil {
		s := slowShare.FindStringSubmatch(r.recorded[m[1]])
		if s == nil {
			t.Fatalf("%s cannot be read: %s", m[1], r.recorded[m[1]])
		}
		slow, _ := sum(t, page, s[1], agent)
		all, _ := sum(t, page, s[2], agent)
		if all == 0 {
			return false, 0
		}
		value = slow / all
		return value > number(t, m[2])*number(t, m[3]), value
	}
	m := comparison.FindStringSubmatch(r.Expr)
	if m == nil {
		t.Fatalf("%s cannot be read: %s", r.Alert, r.Expr)
	}
	value, found := sum(t, page, m[1], agent)
	bound := number(t, m[3])
	switch {
	case !found:
		return false, 0
	case m[2] == "==":
		return value == bound, value
	case strings.HasSuffix(m[1], "_seconds"):
		return value > 0, value
	}
	return value > bound, value
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sum adds the series of an agent that a selector selects.
func sum(t *testing.T, page, selector, agent string) (total float64, found bool) {
	t.Helper()
	series := regexp.MustCompile(`(?m)^(\w+)\{([^}]*)\} (\S+)$`)
	label := regexp.MustCompile(`(\w+)(=~?)"([^"]*)"`)
	name, matchers, _ := strings.Cut(strings.TrimSuffix(selector, "}"), "{")
	for _, s := range series.FindAllStringSubmatch(page, -1) {
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(s[2], -1) {
			labels[l[1]] = l[3]
		}
		selected := s[1] == name && labels["agent"] == agent
		for _, l := range label.FindAllStringSubmatch(matchers, -1) {
			want := regexp.QuoteMeta(l[3])
			if l[2] == "=~" {
				want = l[3]
			}
			selected = selected && regexp.MustCompile(`^(?:`+want+`)$`).MatchString(labels[l[1]])
		}
		if selected {
			total, found = total+number(t, s[3]), true
		}
	}
	return total, found
}
