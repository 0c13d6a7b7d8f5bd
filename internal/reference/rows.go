package reference

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

//go:embed keys/*.txt
var tables embed.FS

// FirstRelease is the release that has every key whose row names no other.
const FirstRelease = "1.0.0"

// Refused marks a key that is known and always refused, in the place of its default.
const Refused = "refused"

// A Row says of a key what its decoder cannot.
type Row struct {
	Default, Meaning, Since string
	// Examples are values of the key, in YAML. Together they have it read in each of its forms.
	Examples []string
}

// A table has the rows of one file.
type table struct {
	paths   []string // in the order of the table
	order   []string // of paths and aliases
	rows    map[string]Row
	aliases [][2]string // a place, and the place whose rows it has
	context map[string]any
}

// anything, in the place of a place, is for what takes any JSON below it.
const anything = "any"

// readTables reads all tables, by the names of the files that they are about.
func readTables() (map[string]*table, error) {
	all := map[string]*table{}
	for _, file := range Files() {
		text, err := tables.ReadFile("keys/" + strings.TrimSuffix(file, ".yaml") + ".txt")
		if err != nil {
			return nil, err
		}
		t := &table{rows: map[string]Row{}, context: map[string]any{}}
		for n, line := range strings.Split(string(text), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			if err := t.read(line); err != nil {
				return nil, fmt.Errorf("keys of %s, line %d: %w", file, n+1, err)
			}
		}
		all[file] = t
	}
	return all, nil
}

func (t *table) read(line string) error {
	if text, ok := strings.CutPrefix(line, "context: "); ok {
		return yaml.Unmarshal([]byte(text), &t.context)
	}
	if place, like, ok := strings.Cut(line, " = "); ok && !strings.Contains(place, "|") {
		t.aliases, t.order = append(t.aliases, [2]string{place, like}), append(t.order, place)
		return nil
	}
	cells := strings.Split(line, "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if len(cells) < 4 || len(cells) > 5 {
		return fmt.Errorf("it has %d cells: path | default | meaning | example [| since]", len(cells))
	}
	r := Row{Default: cells[1], Meaning: cells[2], Examples: strings.Split(cells[3], " ;; "), Since: FirstRelease}
	if len(cells) == 5 {
		r.Since = cells[4]
	}
	if _, twice := t.rows[cells[0]]; twice {
		return fmt.Errorf("the key %s has a row already", cells[0])
	}
	t.paths, t.order, t.rows[cells[0]] = append(t.paths, cells[0]), append(t.order, cells[0]), r
	return nil
}

// find returns the row of a key, which may be that of another place.
func find(all map[string]*table, file, path string) (Row, bool) {
	t := all[file]
	if r, ok := t.rows[path]; ok {
		return r, true
	}
	for _, alias := range t.aliases {
		place, like := alias[0], alias[1]
		base, below := strings.CutSuffix(place, ".*")
		rest, ok := strings.CutPrefix(path, base)
		if !ok || rest == "" && below || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		other, at, elsewhere := strings.Cut(like, ":")
		if !elsewhere {
			other, at = file, like
		}
		if r, ok := find(all, other, at+rest); ok {
			return r, true
		}
	}
	return Row{}, false
}

// values parses the examples.
func (r Row) values() ([]any, error) {
	var all []any
	for _, text := range r.Examples {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return nil, fmt.Errorf("the example %s: %w", text, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// machine returns the default as a value of the file, if it is one.
func (r Row) machine(kinds []string) (any, bool) {
	var v any
	if r.Default == "" || r.Default == Refused || yaml.Unmarshal([]byte(r.Default), &v) != nil {
		return nil, false
	}
	switch v.(type) {
	case int, float64, uint64:
		return v, slices.Contains(kinds, "integer") || slices.Contains(kinds, "number")
	case bool:
		return v, slices.Contains(kinds, "boolean")
	}
	return nil, false
}

// Files are those that have tables.
func Files() []string {
	return []string{"fleet.yaml", "agent.yaml", "capabilities.yaml", "rpc-peers.yaml", "identities.yaml"}
}
