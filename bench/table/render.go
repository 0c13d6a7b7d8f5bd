package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// libraries lists the other Go libraries.
func libraries() []string { return []string{"gojsonschema", "santhosh", "google"} }

// label is how a table calls an engine.
func label(engine string) string {
	switch engine {
	case "agentd":
		return "agentd, `Valid`"
	case "agentd-check":
		return "agentd, `Check`"
	case "jsontext-syntax-only":
		return "jsontext, syntax only"
	case "santhosh":
		return "santhosh-tekuri v6"
	case "google":
		return "google/jsonschema-go"
	}
	return engine
}

// tables renders all of them, by name.
func tables(all results) map[string]string {
	return map[string]string{
		"sizes":     sizes(all),
		"keywords":  keywords(all),
		"workloads": workloads(all, "Workload", "workload"),
		"full":      workloads(all, "Full", "full profile, schema"),
		"compile":   compile(all),
		"memory":    memory(all),
	}
}

// table joins rows of cells, the first of which is the head.
func table(rows ...[]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// sizes compares the engines on payloads of three sizes.
func sizes(all results) string {
	which := []string{"size=small", "size=medium", "size=large"}
	rows := [][]string{{"engine", "83 B", "2 KB", "64 KB", "against `Valid`", "allocations"}}
	for _, engine := range append([]string{"agentd", "agentd-check", "jsontext-syntax-only", "ajv"}, libraries()...) {
		row := []string{label(engine)}
		var ratios, allocations []string
		for _, w := range which {
			ns, ok := all.time("Validate", w, engine)
			row = append(row, duration(ns, ok))
			ours, _ := all.time("Validate", w, "agentd")
			ratios = append(ratios, ratio(ns, ours, ok))
			if n, measured := all.median("Validate", w, engine, "allocs/op"); measured {
				allocations = append(allocations, grouped(int(n)))
			}
		}
		rows = append(rows, append(row, strings.Join(ratios, " / "), orDash(strings.Join(allocations, " / "))))
	}
	return table(rows...)
}

// keywords compares them on arrays in which one keyword does most of the work.
func keywords(all results) string {
	others := append(libraries(), "jsontext-syntax-only")
	rows := [][]string{{"keyword", "agentd"}}
	for _, e := range others {
		rows[0] = append(rows[0], label(e))
	}
	for _, which := range slices.Sorted(maps.Keys(all["Keyword"])) {
		ours, ok := all.time("Keyword", which, "agentd")
		row := []string{strings.TrimPrefix(which, "keyword="), duration(ours, ok)}
		for _, e := range others {
			ns, ok := all.time("Keyword", which, e)
			row = append(row, ratio(ns, ours, ok))
		}
		rows = append(rows, row)
	}
	return table(rows...)
}

// workloads compares with the best other Go library on payloads that pass and that fail, the
// worst ratio first.
func workloads(all results, benchmark, title string) string {
	const valid, invalid = "/payload=valid", "/payload=invalid"
	rows := [][]string{{title, "passes", "best other", "", "fails", "best other", "", "syntax only", "`Check` of what fails"}}
	var names []string
	for which := range all[benchmark] {
		if name, ok := strings.CutSuffix(which, valid); ok {
			names = append(names, name)
		}
	}
	behind := func(which string) float64 {
		ours, _ := all.time(benchmark, which, "agentd")
		if _, ns, ok := all.best(benchmark, which); ok {
			return ns / ours
		}
		return 1e9 // no other engine is right
	}
	worst := func(name string) float64 { return min(behind(name+valid), behind(name+invalid)) }
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(worst(a), worst(b)), cmp.Compare(a, b)) })
	for _, name := range names {
		_, short, _ := strings.Cut(name, "=")
		row := []string{short}
		for _, which := range []string{name + valid, name + invalid} {
			ours, ok := all.time(benchmark, which, "agentd")
			engine, ns, compared := all.best(benchmark, which)
			row = append(row, duration(ours, ok), orDash(engine), ratio(ns, ours, compared))
		}
		ours, _ := all.time(benchmark, name+valid, "agentd")
		syntax, ok := all.time(benchmark, name+valid, "jsontext-syntax-only")
		row = append(row, ratio(syntax, ours, ok))
		ours, _ = all.time(benchmark, name+invalid, "agentd")
		check, ok := all.time(benchmark, name+invalid, "agentd-check")
		rows = append(rows, append(row, ratio(check, ours, ok)))
	}
	return table(rows...)
}

// schemas lists those that are compiled, the smallest compile time last.
func schemas(all results) []string {
	names := slices.Collect(maps.Keys(all["Compile"]))
	slices.SortFunc(names, func(a, b string) int {
		x, _ := all.time("Compile", a, "agentd")
		y, _ := all.time("Compile", b, "agentd")
		return cmp.Compare(y, x)
	})
	return names
}

// compile compares the times of compiling.
func compile(all results) string {
	others := append(libraries(), "ajv")
	rows := [][]string{{"schema", "agentd"}}
	for _, e := range others {
		rows[0] = append(rows[0], label(e))
	}
	for _, which := range schemas(all) {
		ours, ok := all.time("Compile", which, "agentd")
		row := []string{strings.TrimPrefix(which, "schema="), duration(ours, ok)}
		for _, e := range others {
			ns, ok := all.time("Compile", which, e)
			row = append(row, ratio(ns, ours, ok))
		}
		rows = append(rows, row)
	}
	return table(rows...)
}

// memory compares what compiling allocates and what a compiled schema keeps, and what
// validating allocates.
func memory(all results) string {
	engines := append([]string{"agentd"}, libraries()...)
	rows := [][]string{{"schema"}}
	for _, e := range engines {
		rows[0] = append(rows[0], strings.TrimSuffix(label(e), ", `Valid`"))
	}
	for _, which := range schemas(all) {
		name := strings.TrimPrefix(which, "schema=")
		row := []string{name}
		for _, e := range engines {
			kept, ok := all.median("Compile", which, e, "retained-B")
			made, _ := all.median("Compile", which, e, "B/op")
			spent, judged := all.median("Full", which+"/payload=valid", e, "B/op")
			if !judged {
				spent, _ = all.median("Validate", "size="+name, e, "B/op")
			}
			if !ok {
				row = append(row, "–")
				continue
			}
			row = append(row, fmt.Sprintf("%s / %s / %s", kilobytes(kept), kilobytes(made), kilobytes(spent)))
		}
		rows = append(rows, row)
	}
	return table(rows...)
}

// duration writes a time as people do.
func duration(ns float64, ok bool) string {
	switch {
	case !ok:
		return "–"
	case ns < 1000:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
	return fmt.Sprintf("%.2f ms", ns/1e6)
}

// ratio writes how many times as long something takes.
func ratio(ns, ours float64, ok bool) string {
	if !ok || ours == 0 {
		return "–"
	}
	if ns/ours >= 100 {
		return fmt.Sprintf("%.0f×", ns/ours)
	}
	return fmt.Sprintf("%.1f×", ns/ours)
}

// kilobytes writes a number of bytes.
func kilobytes(n float64) string {
	if n == 0 {
		return "0"
	}
	if n < 9_950 {
		return fmt.Sprintf("%.1f", n/1000)
	}
	return fmt.Sprintf("%.0f", n/1000)
}

// grouped writes a number with commas.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
