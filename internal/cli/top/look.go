package top

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

// parseSort returns the order of a name, byRate for "".
func parseSort(name string) (Sort, error) {
	if name == "" {
		return byRate, nil
	}
	if !slices.Contains(sorts(), Sort(name)) {
		return "", cli.Usage("--sort: must be rate, errors, latency, flight or name, not %q", name)
	}
	return Sort(name), nil
}

// A look is how a snapshot is shown. Names and texts come from files of others, from peers and from
// skills: what a terminal would act on is escaped everywhere.
type look struct {
	order  Sort
	colors output.Colors
}

// unknown stands for what is not known, or does not apply.
const unknown = "-"

// plain is all of a snapshot, as text.
func (l look) plain(s *snapshot) string {
	lines := []string{l.title(s)}
	lines = append(lines, l.troubles(s)...)
	for _, table := range [][]string{l.agents(s), l.calls(s), l.skills(s), l.models(s)} {
		if len(table) > 1 {
			lines = append(lines, append([]string{"", l.colors.Bold(table[0])}, table[1:]...)...)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// title is the fleet at a glance.
func (l look) title(s *snapshot) string {
	answering, silent, made, served := 0, 0, 0.0, 0.0
	var elsewhere []string
	for i := range s.Agents {
		a := &s.Agents[i]
		switch m, n, _ := a.rates(); {
		case a.answers():
			answering++
			made, served = made+m, served+n
		case a.elsewhere:
			elsewhere = append(elsewhere, a.Agent)
		default:
			silent++
		}
	}
	text := fmt.Sprintf("%s  %s: %d running", s.Time.Format("15:04:05"), s.Fleet, answering)
	if silent > 0 {
		text += fmt.Sprintf(", %d away", silent)
	}
	text += fmt.Sprintf(", %.1f calls/s made, %.1f/s served, by %s", made, served, l.order)
	if len(elsewhere) > 0 {
		text += "; not running here: " + strings.Join(elsewhere, ", ")
	}
	return output.Printable(text)
}

// troubles are the conditions of all agents, and the agents that do not answer: first what keeps
// calls from being served.
func (l look) troubles(s *snapshot) []string {
	var grave, advisory []string
	for i := range s.Agents {
		a := &s.Agents[i]
		if !a.answers() && !a.elsewhere {
			grave = append(grave, l.trouble(true, fmt.Sprintf("%s: %s, since %s", a.Agent, a.Error, a.Away.Format("15:04:05"))))
		}
		if a.State == stateNotReady && len(a.Conditions) == 0 {
			grave = append(grave, l.trouble(true, fmt.Sprintf("%s: is not ready: %s", a.Agent, a.Error)))
		}
		for _, c := range a.Conditions {
			text := l.trouble(!c.Advisory, fmt.Sprintf("%s [%s] %s: %s", a.Agent, c.Kind, c.Effect, c.Cause))
			if c.Advisory {
				advisory = append(advisory, text)
			} else {
				grave = append(grave, text)
			}
		}
	}
	return append(grave, advisory...)
}

func (l look) trouble(grave bool, text string) string {
	text = output.Printable(strings.Join(strings.Fields(text), " "))
	if grave {
		return "✗ " + text
	}
	return "! " + text
}

// agents is a table with a row for each agent that answers, has answered, or was asked for.
func (l look) agents(s *snapshot) []string {
	var rows [][]string
	for i := range s.Agents {
		a := &s.Agents[i]
		switch {
		case a.elsewhere:
		case !a.answers():
			rows = append(rows, []string{a.Agent, a.State, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown})
		default:
			rows = append(rows, a.row(s.Time))
		}
	}
	return table([]string{"AGENT", "STATE", "UP", "MADE/S", "SERVED/S", "FAILED", "FLIGHT", "QUEUED", "APPROVALS", "BROKER", "AUDIT", "NOTE"}, rows)
}

func (a *agent) row(now time.Time) []string {
	made, served, failed := a.rates()
	inFlight, queued := a.load()
	waiting := 0
	for _, w := range a.Approvals {
		waiting += w.Waiting
	}
	rates := []string{unknown, unknown, unknown}
	if a.Seconds > 0 {
		rates = []string{rate(made), rate(served), unknown}
		if made+served > 0 {
			rates[2] = percent(failed)
		}
	}
	return []string{
		a.Agent, a.State, uptime(now.Sub(a.Started)), rates[0], rates[1], rates[2],
		strconv.Itoa(inFlight), strconv.Itoa(queued), strconv.Itoa(waiting), a.brokerText(), a.auditText(), a.note(),
	}
}

// brokerText is the round trip to the broker, or what is wrong with it.
func (a *agent) brokerText() string {
	var all []string
	for _, b := range a.Brokers {
		switch {
		case !b.Connected:
			all = append(all, "away")
		case b.RoundTripMs == 0:
			all = append(all, "silent")
		default:
			all = append(all, millis(b.RoundTripMs))
		}
	}
	if len(all) == 0 {
		return unknown
	}
	return strings.Join(all, " ")
}

// auditText is how many records wait for the disk, or that the log takes none.
func (a *agent) auditText() string {
	switch {
	case a.Audit == nil:
		return unknown
	case a.Audit.Refusing:
		return "refusing"
	}
	text := strconv.Itoa(a.Audit.Backlog)
	if a.Audit.Lost > 0 {
		text += fmt.Sprintf(" (%d lost)", a.Audit.Lost)
	}
	return text
}

// note has what most agents have nothing of.
func (a *agent) note() string {
	var all []string
	if q := a.Queue; q != nil && q.Waiting+q.InFlight+q.Dead > 0 {
		all = append(all, fmt.Sprintf("queue: %d waiting, %d in flight, %d dead", q.Waiting, q.InFlight, q.Dead))
	}
	if a.Audit != nil {
		lagging := 0
		for _, w := range a.Audit.Witnesses {
			if !w.UnsignedSince.IsZero() {
				lagging++
			}
		}
		if lagging > 0 {
			all = append(all, fmt.Sprintf("%d of %d witnesses lag", lagging, len(a.Audit.Witnesses)))
		}
	}
	if a.Dropped > 0 {
		all = append(all, fmt.Sprintf("messages dropped: %d", a.Dropped))
	}
	return strings.Join(all, "; ")
}

// calls is a table with a row for each pair of a peer and a capability.
func (l look) calls(s *snapshot) []string {
	type entry struct {
		agent *agent
		calls *calls
	}
	var all []entry
	for i := range s.Agents {
		for j := range s.Agents[i].Calls {
			all = append(all, entry{&s.Agents[i], &s.Agents[i].Calls[j]})
		}
	}
	// Of all agents together: the busiest calls stand above the others, whoever makes them.
	slices.SortStableFunc(all, func(x, y entry) int { return compareCalls(x.calls, y.calls, l.order) })
	if l.order == byName {
		slices.SortStableFunc(all, func(x, y entry) int { return strings.Compare(x.agent.Agent, y.agent.Agent) })
	}
	rows := make([][]string, len(all))
	for i, e := range all {
		rows[i] = e.calls.row(e.agent)
	}
	return table([]string{"AGENT", "ROLE", "PEER", "CAPABILITY", "CALLS/S", "FAILED", "P50", "P99", "FLIGHT", "QUEUED", "NOTE"}, rows)
}

func (c *calls) row(a *agent) []string {
	perSecond, failed, p50, p99 := unknown, unknown, unknown, unknown
	if a.Seconds > 0 {
		perSecond = rate(c.PerSecond)
	}
	if c.Ended > 0 {
		failed, p50, p99 = percent(c.FailedShare), millis(c.P50Ms), millis(c.P99Ms)
	}
	queued := unknown
	if c.Role == rpc.RoleCallee {
		queued = strconv.Itoa(c.Queued)
	}
	return []string{a.Agent, string(c.Role), cli.ID(string(c.Peer)), c.Capability, perSecond, failed, p50, p99, strconv.Itoa(c.InFlight), queued, c.note(a)}
}

// note has what most calls do not meet: an open circuit, rate limits, violations, drift.
func (c *calls) note(a *agent) string {
	var all []string
	if state := a.breaker(c); state != "" {
		all = append(all, "circuit "+string(state))
	}
	if c.LimitedPerSecond > 0 {
		all = append(all, fmt.Sprintf("%s/s limited", rate(c.LimitedPerSecond)))
	}
	if c.Violations > 0 {
		all = append(all, fmt.Sprintf("violations: %d", c.Violations))
	}
	if c.Role == rpc.RoleCaller {
		for _, d := range a.Drift {
			if d.Peer == c.Peer && d.Refused > 0 {
				all = append(all, fmt.Sprintf("drift: %d refused", d.Refused))
			}
		}
	}
	if c.RetriesPerSecond > 0 {
		all = append(all, fmt.Sprintf("%s/s retried", rate(c.RetriesPerSecond)))
	}
	return strings.Join(all, "; ")
}

// skills is a table of the programs that run, and of workers.
func (l look) skills(s *snapshot) []string {
	var rows [][]string
	for i := range s.Agents {
		a := &s.Agents[i]
		for _, k := range a.Skills {
			cpu := unknown
			if a.Seconds > 0 {
				cpu = percent(k.CPU)
			}
			serving, running, waiting, note := unknown, unknown, unknown, ""
			if w := k.Worker; w != nil {
				serving, running, waiting = fmt.Sprintf("%d/%d", w.Serving, w.Instances), strconv.FormatInt(w.Running, 10), strconv.FormatInt(w.Waiting, 10)
				note = w.Down
				if note == "" && w.Restarts > 0 {
					note = fmt.Sprintf("restarts: %d", w.Restarts)
				}
			}
			rows = append(rows, []string{a.Agent, k.Skill, strconv.Itoa(k.Processes), serving, running, waiting, cpu, size(k.ResidentBytes), note})
		}
	}
	return table([]string{"AGENT", "SKILL", "PROCESSES", "SERVING", "RUNNING", "WAITING", "CPU", "MEMORY", "NOTE"}, rows)
}

// table returns the lines of a table, the header first, without what a terminal would act on.
func table(header []string, rows [][]string) []string {
	var b bytes.Buffer
	_ = output.WriteTable(&b, header, rows) // a buffer takes everything
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func rate(perSecond float64) string {
	if perSecond >= 100 {
		return fmt.Sprintf("%.0f", perSecond)
	}
	return fmt.Sprintf("%.1f", perSecond)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", share*100) }

// millis is a time in milliseconds, with three digits that count.
func millis(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0fms", ms)
	}
	return fmt.Sprintf("%.1fs", ms/1000)
}

func size(n int64) string {
	const mega = 1 << 20
	if n >= 10<<30 {
		return fmt.Sprintf("%.1fG", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.0fM", float64(n)/mega)
}

// uptime is a time in one or two units.
func uptime(d time.Duration) string {
	switch d = max(d, 0).Round(time.Second); {
	case d < time.Hour:
		return d.String()
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
