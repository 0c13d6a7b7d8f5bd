package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// A result is the outcome for one package.
type result struct {
	name      string
	mutants   int // in the package
	running   int
	killed    int
	timedOut  int
	invalid   int
	survivors []survivor
	took      time.Duration
}

type survivor struct {
	mutant
	verdict
}

func (r *result) add(m mutant, v verdict) {
	switch v {
	case killed:
		r.killed++
	case timedOut:
		r.timedOut++
	case invalid:
		r.invalid++
	case survived, uncovered:
		r.survivors = append(r.survivors, survivor{m, v})
	}
}

// judged is the number of mutants with a verdict about the tests: those that
// compile.
func (r *result) judged() int { return r.killed + r.timedOut + len(r.survivors) }

// rate is the share of judged mutants that are dead, in percent. Without
// mutants there is nothing to notice.
func (r *result) rate() float64 {
	if r.judged() == 0 {
		return 100
	}
	return 100 * float64(r.killed+r.timedOut) / float64(r.judged())
}

// report writes a table of the packages, and below it the survivors by place.
func report(w io.Writer, results []result) {
	for _, r := range results {
		slices.SortFunc(r.survivors, func(a, b survivor) int {
			return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.start, b.start), cmp.Compare(a.kind, b.kind))
		})
		for _, s := range r.survivors {
			note := ""
			if s.verdict == uncovered {
				note = "  (no test enters it)"
			}
			fmt.Fprintf(w, "%s/%s:%d: %s%s\n", r.name, filepath.Base(s.file), s.line, s.change(), note)
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\npackage\tmutants\trun\tkilled\ttimed out\tsurvived\trate\ttime\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.0f %%\t%s\t\n",
			r.name, r.mutants, r.judged(), r.killed, r.timedOut, len(r.survivors), r.rate(), r.took.Round(time.Second))
	}
	_ = table.Flush()
}
