package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template"
)

// pageText is the page: prose, and places for what the data say.
//
//go:embed page.md.tmpl
var pageText string

// writePage writes the whole page.
func (r *result) writePage(out io.Writer) error {
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	var tables strings.Builder
	for _, s := range r.shapes() {
		r.writeTable(&tables, s)
	}
	return page.Execute(out, map[string]any{
		"Goals": r.standings(), "Tables": strings.TrimSpace(tables.String()), "Systems": systems(), "Machines": r.Machines,
		"Rounds": r.rounds(), "For": r.For, "Smallest": r.shapes()[0].Size,
	})
}

// rounds is the number of samples that a figure rests on.
func (r *result) rounds() int {
	if len(r.Rows) == 0 {
		return 0
	}
	return len(r.Rows[0].Samples)
}

// Percent shows a share of the processors.
func (machine) Percent(share float64) string {
	if share < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// load reads the results of earlier runs, as one.
func loadResults(paths string) (*result, error) {
	all := &result{}
	for _, path := range strings.Split(paths, ",") {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var r result
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all.add(&r)
	}
	return all, nil
}

// add takes the rounds of another run in.
func (r *result) add(other *result) {
	r.Machines, r.For = append(r.Machines, other.Machines...), other.For
	for _, row := range other.Rows {
		found := false
		for i := range r.Rows {
			if mine := &r.Rows[i]; mine.System == row.System && mine.Shape == row.Shape {
				mine.Samples, found = append(mine.Samples, row.Samples...), true
			}
		}
		if !found {
			r.Rows = append(r.Rows, row)
		}
	}
	for name, f := range other.Extras {
		for _, v := range f {
			r.note(name, v)
		}
	}
}
