package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A level is how one check has ended. The set is closed: scripts match on it.
type level string

const (
	ok      level = "ok"
	warn    level = "warn"    // calls work; something is not as it should be
	fail    level = "fail"    // calls fail, or will
	skipped level = "skipped" // the text says why
)

// A check names what was examined. The names are stable.
type check string

const (
	checkConfig    check = "config"
	checkAgent     check = "agent"
	checkCircuits  check = "circuits"
	checkLatency   check = "latency"
	checkPeers     check = "peers"
	checkWitnesses check = "witnesses"
	checkBroker    check = "broker"
	checkRights    check = "broker-permissions"
	checkJetStream check = "jetstream"
	checkClock     check = "clock"
	checkKeys      check = "keys"
	checkIdentity  check = "identity"
	checkDisk      check = "disk"
	checkPorts     check = "ports"
	checkSandbox   check = "sandbox"
)

// A line is what one check has found.
type line struct {
	// Agent is the member that it is about, "" for the fleet or this host.
	Agent  string `json:"agent,omitempty"`
	Check  check  `json:"check"`
	Status level  `json:"status"`
	// Text is what was found, and Remedy what to do about it.
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// A report is all that was found, in the order of the checks.
type report struct {
	lines []line
}

func (r *report) add(agent string, c check, l level, remedy, format string, args ...any) {
	if l == ok {
		remedy = "" // there is nothing to do
	}
	r.lines = append(r.lines, line{Agent: agent, Check: c, Status: l, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (r *report) count(l level) (n int) {
	for _, one := range r.lines {
		if one.Status == l {
			n++
		}
	}
	return n
}

// write prints the report. The table has a heading for each agent, and the remedy of what is
// wrong below it.
func (r *report) write(env *cli.Env) error {
	if env.Format != output.Table {
		return cli.WriteList(env, r.lines)
	}
	colors := env.Colors()
	var b strings.Builder
	heading := "\x00"
	for _, l := range r.lines {
		if l.Agent != heading {
			if heading = l.Agent; b.Len() > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintln(&b, colors.Bold(titleOf(l.Agent)))
		}
		mark := map[level]string{ok: colors.Good("✓"), warn: "!", fail: colors.Bad("✗"), skipped: "·"}[l.Status]
		fmt.Fprintf(&b, "%s %-18s %s\n", mark, l.Check, output.PrintableText(oneLine(l.Text)))
		if l.Remedy != "" {
			fmt.Fprintf(&b, "  %-18s → %s\n", "", output.PrintableText(oneLine(l.Remedy)))
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %d warn, %d fail, %d skipped\n", r.count(ok), r.count(warn), r.count(fail), r.count(skipped))
	_, err := io.WriteString(env.Stdout, b.String())
	return err
}

func titleOf(agent string) string {
	if agent == "" {
		return "fleet and host"
	}
	return "agent://" + agent
}

// oneLine folds a text with line breaks: an error may have a hint below it.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
