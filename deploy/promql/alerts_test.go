package promql_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"go.yaml.in/yaml/v3"
)

// A rule is an alert, or what is recorded for one.
type rule struct {
	Alert, Record, Expr string
	Labels              map[string]string
}

// A ruleTest is one of promtool's form, as far as it is used here.
type ruleTest struct {
	Name        string
	InputSeries []struct{ Series, Values string } `yaml:"input_series"`
	Alerts      []struct {
		At       string     `yaml:"eval_time"`
		Name     string     `yaml:"alertname"`
		Expected []expected `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

// expected is an alert that fires.
type expected struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "prometheus", name))
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// expressions returns what each alert asks, with the expressions of what it reads that is recorded:
// a group's rules are evaluated in their order, at one time.
func expressions(t *testing.T) map[string]rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	read(t, "agentd.rules.yaml", &file)
	var recorded []string
	all := map[string]rule{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			r.Expr = strings.NewReplacer(recorded...).Replace(r.Expr)
			if r.Record != "" {
				recorded = append(recorded, r.Record, "("+r.Expr+")")
				continue
			}
			all[r.Alert] = r
		}
	}
	return all
}

// AgentdLatencyBurn fires where classic buckets are scraped, and where native histograms alone are.
func TestLatencyBurn(t *testing.T) {
	const alert = "AgentdLatencyBurn"
	rules := expressions(t)
	var results [][]expected // of each file
	for _, name := range []string{"agentd.test.yaml", "agentd.native.test.yaml"} {
		var file struct{ Tests []ruleTest }
		read(t, name, &file)
		var wanted []expected
		for _, test := range file.Tests {
			for _, a := range test.Alerts {
				if a.Name != alert {
					continue
				}
				wanted = append(wanted, a.Expected...)
				var want []string
				for _, e := range a.Expected {
					want = append(want, labelled(e.Labels))
				}
				if got := firing(t, test, rules[alert], a.At); !slices.Equal(got, want) {
					t.Errorf("%s, %s, at %s: %q fire, not %q", name, test.Name, a.At, got, want)
				}
			}
		}
		results = append(results, wanted)
	}
	// promtool holds the texts of the first file against the rules.
	if len(results[0]) == 0 || !reflect.DeepEqual(results[0], results[1]) {
		t.Errorf("the two files expect %+v and %+v", results[0], results[1])
	}
}

// firing returns the labels of the alerts of a rule that fire at a time.
func firing(t *testing.T, test ruleTest, r rule, at string) (all []string) {
	t.Helper()
	after, err := model.ParseDuration(at)
	if err != nil {
		t.Fatal(err)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute})
	defer engine.Close()
	query, err := engine.NewInstantQuery(t.Context(), recordedSeries(t, test), nil, r.Expr, time.Unix(0, 0).Add(time.Duration(after)))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Warnings) > 0 {
		t.Errorf("%v", result.Warnings)
	}
	for _, sample := range vector {
		fired := maps.Clone(r.Labels)
		maps.Copy(fired, sample.Metric.Map())
		all = append(all, labelled(fired))
	}
	slices.Sort(all)
	return all
}

func labelled(of map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%s=%q", name, of[name]))
	}
	return strings.Join(all, ",")
}
