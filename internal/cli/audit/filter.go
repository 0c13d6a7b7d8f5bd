package audit

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/cli"
)

// ConditionNames lists what records can be filtered by: each name is a flag of
// `agentd audit query`, and the left side of a --match.
func ConditionNames() []string {
	return []string{"kind", "tenant", "peer", "capability", "side", "correlation", "session", "text", "since", "until"}
}

// Conditions are the flags that filter records, by name. An absent or empty
// value is no condition. Only kind may have several values.
type Conditions map[string][]string

// filter converts the conditions. Without a condition on the kind it leaves out
// captured payloads, so that nobody shows or exports them by accident.
func (c Conditions) filter(now time.Time) (auditchain.Filter, error) {
	var f auditchain.Filter
	for _, name := range ConditionNames() {
		for _, value := range c[name] {
			if value == "" && name != "kind" { // a flag that was not given
				continue
			}
			if err := setCondition(&f, "--"+name, name, value, now); err != nil {
				return f, err
			}
		}
	}
	if len(f.Kinds) == 0 {
		f.NotKinds = []auditchain.Kind{auditchain.KindPayloadCapture}
	}
	return f, nil
}

// parseMatches reads the values of --match, such as correlation=c-17. All must
// hold. A second value for the same column is an error, except for kind: no
// record could match both, so it must be a mistake.
func parseMatches(matches []string, now time.Time) (auditchain.Filter, error) {
	var f auditchain.Filter
	var seen []string
	for _, m := range matches {
		name, value, ok := strings.Cut(m, "=")
		if !ok || value == "" {
			return f, cli.Usage("--match: must be like correlation=c-17, not %q", m)
		}
		if name != "kind" && slices.Contains(seen, name) {
			return f, cli.Usage("--match: %s is given twice, and no record can match both", name)
		}
		seen = append(seen, name)
		if err := setCondition(&f, "--match "+name, name, value, now); err != nil {
			return f, err
		}
	}
	return f, nil
}

// setCondition adds one condition to f. Errors name the flag it came from.
func setCondition(f *auditchain.Filter, flag, name, value string, now time.Time) (err error) {
	switch name {
	case "kind":
		if !auditchain.Kind(value).Valid() {
			return cli.Usage("%s: there is no kind %q; the kinds are %s", flag, value, joinKinds(auditchain.Kinds()))
		}
		f.Kinds = append(f.Kinds, auditchain.Kind(value))
	case "tenant":
		f.Tenant = value
	case "peer":
		f.Peer = string(envelope.AddressFor(value))
	case "capability":
		f.Capability = value
	case "side":
		if f.Side = auditchain.Side(value); f.Side != auditchain.SideRequest && f.Side != auditchain.SideResponse {
			return cli.Usage("%s: must be request or response, not %q", flag, value)
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
		return cli.Usage("%s: records cannot be matched by %q, only by %s", flag, name, strings.Join(ConditionNames(), ", "))
	}
	return err
}

// joinKinds lists kinds for an error message.
func joinKinds(kinds []auditchain.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// parseTime reads a time in RFC 3339, or an age before now.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	if age, ok := parseAge(s); ok {
		return now.Add(-age), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, cli.Usage("%s: must be like 2026-01-31T12:00:00Z, or an age like 2h or 90d, not %q", flag, s)
	}
	return t, nil
}

// parseAge reads a duration that is not negative. Unlike [time.ParseDuration]
// it accepts whole days, the usual unit of retention periods; 16 bits of them
// (179 years) keep the product far from overflow.
func parseAge(s string) (time.Duration, bool) {
	const day = 24 * time.Hour
	if number, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 16)
		return time.Duration(days) * day, err == nil
	}
	age, err := time.ParseDuration(s)
	return age, err == nil && age >= 0
}
