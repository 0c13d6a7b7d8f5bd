package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
)

// filterNames lists what records can be chosen by: the flags of `agentd audit
// query`, and the left sides of --match.
func filterNames() []string {
	return []string{"kind", "tenant", "peer", "capability", "side", "correlation", "session", "text", "since", "until"}
}

// setFilter sets the condition called name. In errors it is called flag.
func setFilter(f *auditchain.Filter, flag, name, value string, now time.Time) (err error) {
	switch name {
	case "kind":
		if !auditchain.Kind(value).Valid() {
			return usage("%s: there is no kind %q; there are %s", flag, value, joinKinds(auditchain.Kinds()))
		}
		f.Kinds = append(f.Kinds, auditchain.Kind(value))
	case "tenant":
		f.Tenant = value
	case "peer":
		f.Peer = value
	case "capability":
		f.Capability = value
	case "side":
		if f.Side = auditchain.Side(value); f.Side != auditchain.SideRequest && f.Side != auditchain.SideResponse {
			return usage("%s: must be request or response, not %q", flag, value)
		}
	case "correlation":
		f.Correlation = value
	case "session":
		f.Session = value
	case "text":
		f.Text = value
	case "since":
		f.Since, err = parseTime(flag, value, now)
	case "until":
		f.Until, err = parseTime(flag, value, now)
	default:
		return usage("%s: records are not matched by %q, but by %s", flag, name, strings.Join(filterNames(), ", "))
	}
	return err
}

// recordFilter are the flags that choose records.
type recordFilter struct {
	kinds      []string
	conditions map[string]*string // of those in filterNames, all but kind
}

func (r *recordFilter) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&r.kinds, "kind", nil, "only records of these kinds, like capability_schema_violation,lifecycle")
	r.conditions = map[string]*string{}
	for _, flag := range [][2]string{
		{"tenant", "only records of this tenant"},
		{"peer", "only records about this agent://id"},
		{"capability", "only records about this capability"},
		{"side", "request or response"},
		{"correlation", "only records of this call"},
		{"session", "only records of this session"},
		{"text", "only records whose body holds this text"},
		{"since", "not older than this: RFC 3339, or an age like 2h or 90d"},
		{"until", "older than this: RFC 3339, or an age like 10m"},
	} {
		r.conditions[flag[0]] = f.String(flag[0], "", flag[1])
	}
}

// filter is what the flags say. Captured payloads are chosen only by the name of
// their kind: nobody shall show or export them by accident.
func (r *recordFilter) filter(now time.Time) (auditchain.Filter, error) {
	var f auditchain.Filter
	for _, k := range r.kinds {
		if err := setFilter(&f, "--kind", "kind", k, now); err != nil {
			return f, err
		}
	}
	if len(f.Kinds) == 0 {
		f.NotKinds = []auditchain.Kind{auditchain.KindPayloadCapture}
	}
	for _, name := range filterNames() {
		if value := r.conditions[name]; value != nil && *value != "" {
			if err := setFilter(&f, "--"+name, name, *value, now); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

func joinKinds(kinds []auditchain.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// parseMatches reads conditions like correlation=c-17. All must hold; only
// kind may be given several times.
func parseMatches(matches []string, now time.Time) (auditchain.Filter, error) {
	var f auditchain.Filter
	var seen []string
	for _, m := range matches {
		name, value, ok := strings.Cut(m, "=")
		if !ok || value == "" {
			return f, usage("--match: must be like correlation=c-17, not %q", m)
		}
		if name != "kind" && slices.Contains(seen, name) {
			return f, usage("--match: %s is given twice; no record could have both", name)
		}
		seen = append(seen, name)
		if err := setFilter(&f, "--match "+name, name, value, now); err != nil {
			return f, err
		}
	}
	return f, nil
}

// parseTime reads RFC 3339, or an age.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	if age, ok := parseAge(s); ok {
		return now.Add(-age), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, usage("%s: must be like 2026-01-31T12:00:00Z, or an age like 2h or 90d, not %q", flag, s)
	}
	return t, nil
}

// parseAge reads a duration that is not negative. Other than
// [time.ParseDuration] it knows days.
func parseAge(s string) (time.Duration, bool) {
	const day = 24 * time.Hour
	if number, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 16)
		return time.Duration(days) * day, err == nil
	}
	age, err := time.ParseDuration(s)
	return age, err == nil && age >= 0
}
