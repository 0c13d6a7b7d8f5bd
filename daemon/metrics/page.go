package metrics

import (
	"fmt"
	"strings"
)

// Page is docs/metrics.md from the table on: a table of all metrics.
func Page() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it says | the same in |\n|---|---|---|---|---|\n")
	for _, m := range All() {
		names := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			names[i] = "`" + l + "`"
		}
		typ := string(m.Type)
		if m.Unit != "" {
			typ += ", " + m.Unit
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, typ, strings.Join(names, ", "), m.Help, m.Source)
	}
	return b.String()
}
