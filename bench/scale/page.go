package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// A result is what was measured of one fleet.
type result struct {
	shape shape
	rows  []row
}

const pageHead = `# Growth, measured

Written by ` + "`cd bench && go run ./scale -o ../docs/scale-measured.md`" + `; do not edit. [scale.md](scale.md) says what to conclude.

Each fleet is one process of real daemons, as ` + "`agentd run`" + ` assembles them with defaults, the skills Go functions. The cluster is
%d nats-servers, each in a process of its own, without users. What is checked was counted by the servers (/varz, /connz,
/routez); a formula that is off by more than %.0f %% fails the run. N is the number of agents, K that of servers, P that of the
peers that each agent lists, W that of the witnesses of each audit log. Machine: %d cores of %s, load average %s at the end: other
work ran there, so times are upper bounds, while counts are exact.

`

// render writes the page: a table for the fleets of each shape, with a row for each quantity.
func render(groups ...[]result) string {
	var b strings.Builder
	for i, all := range groups {
		if i == 0 {
			fmt.Fprintf(&b, pageHead, all[0].shape.Servers, tolerance*100, runtime.NumCPU(), runtime.GOARCH, loadAverage())
		}
		fmt.Fprintf(&b, "## K = %d, P = %d, W = %d\n\n### Formulas\n\nFormula → measured (ratio).\n\n", all[0].shape.Servers, all[0].shape.Peers, all[0].shape.Witnesses)
		table(&b, all, false)
		b.WriteString("\n### Without a formula\n\n")
		table(&b, all, true)
		if i < len(groups)-1 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// table writes the rows that have a formula, or those that have none.
func table(b *strings.Builder, all []result, observed bool) {
	head, line := "| what |", "|---|"
	if !observed {
		head, line = head+" formula |", line+"---|"
	}
	for _, r := range all {
		head += fmt.Sprintf(" N = %d |", r.shape.Agents)
		line += "---|"
	}
	fmt.Fprintf(b, "%s\n%s\n", head, line)
	for i, first := range all[0].rows {
		if first.Observed != observed {
			continue
		}
		name := first.Name
		if first.Unit != "" {
			name += ", " + first.Unit
		}
		fmt.Fprintf(b, "| %s |", name)
		if !observed {
			fmt.Fprintf(b, " %s |", first.Formula)
		}
		for _, r := range all {
			if row := r.rows[i]; observed {
				fmt.Fprintf(b, " %s |", number(row.Measured))
			} else {
				fmt.Fprintf(b, " %s → %s (%.2f) |", number(row.Predicted), number(row.Measured), row.Measured/cmp.Or(row.Predicted, 1))
			}
		}
		b.WriteString("\n")
	}
}

// number has three digits, or all those before the point.
func number(f float64) string {
	digits := 0
	if f != 0 {
		digits = max(2-int(math.Floor(math.Log10(math.Abs(f)))), 0)
	}
	text := strconv.FormatFloat(f, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// loadAverage is that of the last minute, where the system tells it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
