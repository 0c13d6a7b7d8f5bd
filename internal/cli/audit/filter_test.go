package audit

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2h":                        now.Add(-2 * time.Hour),
		"1h30m":                     now.Add(-90 * time.Minute),
		"0s":                        now,
		"90d":                       now.Add(-90 * 24 * time.Hour),
		"0d":                        now,
		"2026-01-31T12:00:00Z":      time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00.5Z":    time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC),
		"2026-01-31T12:00:00+02:00": time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC),
	} {
		if got, err := parseTime("--since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "99999999999d", "-2h", "2", "2 h", "yesterday", "2026-01-31", "2026-02-30T00:00:00Z"} {
		_, err := parseTime("--since", text, now)
		if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--since") {
			t.Errorf("%q: %v; want a usage error that names the flag", text, err)
		}
	}
}

// Every condition that is offered has an effect of its own: one without would
// make a redaction erase more than was asked for.
func TestParseMatches(t *testing.T) {
	values := map[string]string{"kind": "rpc_call", "side": "request", "since": "2h", "until": "1h"}
	now := time.Now()
	var all []string
	seen := map[string]string{}
	for _, name := range ConditionNames() {
		value := values[name]
		if value == "" {
			value = "a=b," + name // the value may have any character
		}
		f, err := parseMatches([]string{name + "=" + value}, now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var set []string
		v := reflect.ValueOf(f)
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				set = append(set, v.Type().Field(i).Name)
			}
		}
		if len(set) != 1 || seen[set[0]] != "" {
			t.Errorf("%s sets %v; %v are set by others", name, set, seen)
			continue
		}
		seen[set[0]] = name
		all = append(all, name+"="+value)
	}
	f, err := parseMatches(append(all, "kind=lifecycle"), now)
	want := auditchain.Filter{
		Kinds:  []auditchain.Kind{auditchain.KindRPCCall, auditchain.KindLifecycle},
		Tenant: "a=b,tenant", Peer: "agent://a=b,peer", Capability: "a=b,capability", Side: auditchain.SideRequest,
		Correlation: "a=b,correlation", Session: "a=b,session", Text: "a=b,text",
		Since: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour),
	}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("all conditions: %+v, %v; want %+v", f, err, want)
	}
}
