package reference

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/strictyaml"
)

// A Key is a key of a file, with all that is known of it.
type Key struct {
	Path     string
	Required bool
	Row
	*strictyaml.Key
}

// A File has the keys of one file.
type File struct {
	Name string
	// Keys are in the order of the table, those of other places behind the key that has them.
	Keys []Key
	Root *strictyaml.Key
	rows map[string]Row
}

// ReadFiles traces the decoders with the examples of all tables. The error says which keys have
// no row, which rows have no key, and which examples are wrong.
func ReadFiles() ([]File, error) {
	all, err := readTables()
	if err != nil {
		return nil, err
	}
	var files []File
	var errs []error
	for _, name := range Files() {
		t := &tracer{all: all, file: name, root: &strictyaml.Key{}, traced: map[string]Row{}, known: daemon.LoadOptions().Actions}
		f, err := t.run()
		errs = append(errs, err)
		files = append(files, f)
	}
	return files, errors.Join(errs...)
}

// A tracer reads the examples of one file.
type tracer struct {
	all    map[string]*table
	file   string
	root   *strictyaml.Key
	traced map[string]Row // whose examples were read
	known  []fleet.KnownAction
	errs   []error
}

func (t *tracer) fail(format string, args ...any) {
	t.errs = append(t.errs, fmt.Errorf(t.file+": "+format, args...))
}

func (t *tracer) run() (File, error) {
	if err := t.trace(map[string]any{}); err == nil {
		t.fail("an empty file is accepted")
	}
	own := t.all[t.file]
	for _, path := range own.paths {
		t.examples(path, own.rows[path])
	}
	for _, alias := range own.aliases {
		if place, below := strings.CutSuffix(alias[0], ".*"); below && alias[1] == anything {
			if k := at(t.root, place); k != nil {
				k.Raw = true
			}
		}
	}
	// What an example has below it may be new, and have rows of another place.
	missing := map[string]bool{}
	for found := true; found; {
		found = false
		walk(t.root, func(path string, _, _ *strictyaml.Key) {
			if _, ok := t.traced[path]; ok || missing[path] {
				return
			}
			row, ok := find(t.all, t.file, path)
			if !ok {
				missing[path] = true
				t.fail("the decoder reads the key %s, and no row of internal/reference/keys says what it is", path)
				return
			}
			found = true
			t.examples(path, row)
		})
	}
	f := File{Name: t.file, Root: t.root, rows: t.traced}
	seen := map[string]bool{}
	byPath := map[string]Key{}
	walk(t.root, func(path string, k, parent *strictyaml.Key) {
		seen[path] = true
		row := t.traced[path]
		byPath[path] = Key{Path: path, Required: k.RequiredIn(parent) && row.Default == "", Row: row, Key: k}
	})
	for _, path := range own.paths {
		if !seen[path] {
			t.fail("there is a row for the key %s, which the decoder does not read", path)
		}
	}
	f.order(own, byPath)
	return f, errors.Join(t.errs...)
}

// order lists keys as the table has them; those with rows of another place stand where the table
// names that.
func (f *File) order(t *table, byPath map[string]Key) {
	done := map[string]bool{}
	add := func(path string) {
		if k, ok := byPath[path]; ok && !done[path] {
			done[path] = true
			f.Keys = append(f.Keys, k)
		}
	}
	all := slices.Sorted(maps.Keys(byPath))
	for _, path := range t.order {
		base, below := strings.CutSuffix(path, ".*")
		if _, own := t.rows[path]; !own {
			for _, other := range all {
				rest, ok := strings.CutPrefix(other, base)
				if _, own := t.rows[other]; !own && ok && (rest != "" || !below) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
					add(other)
				}
			}
		}
		add(path)
	}
	for _, path := range all {
		add(path)
	}
}

// walk visits each key below k that has a name, parents first.
func walk(k *strictyaml.Key, visit func(path string, k, parent *strictyaml.Key)) {
	walkAt("", k, visit)
}

func walkAt(at string, k *strictyaml.Key, visit func(path string, k, parent *strictyaml.Key)) {
	if k.Raw {
		return // whatever its decoder asks about, it takes any JSON
	}
	for _, m := range k.Members {
		path := strings.TrimPrefix(at+"."+m.Name, ".")
		visit(path, m, k)
		walkAt(path, m, visit)
	}
	if k.Entry != nil && !k.Closed { // else somebody has looked through the members
		walkAt(at+".*", k.Entry, visit)
	}
	if k.Item != nil {
		walkAt(at+"[]", k.Item, visit)
	}
}

// at returns what a path leads to, or nil.
func at(root *strictyaml.Key, path string) (found *strictyaml.Key) {
	walk(root, func(p string, k, _ *strictyaml.Key) {
		if p == path {
			found = k
		}
	})
	return found
}

// split cuts the last step off a path: a name, .* or [].
func split(path string) (parent, step string) {
	if cut, ok := strings.CutSuffix(path, "[]"); ok {
		return cut, "[]"
	}
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// examples reads those of a key: by itself and beside what the examples of its parent have, one
// of which at least must be in order.
func (t *tracer) examples(path string, row Row) {
	t.traced[path] = row
	values, err := row.values()
	if err != nil {
		t.fail("%s: %w", path, err)
		return
	}
	parent, step := split(path)
	for i, value := range values {
		var faults error
		accepted := false
		for _, context := range t.contexts(parent) {
			context = maps.Clone(context)
			context[step] = value
			for beside := range mostContexts {
				if beside > 1 && (accepted && row.Default != Refused || faults != nil && row.Default == Refused) {
					break
				}
				err := t.below(t.trace(t.wrap(parent, context, beside)), path)
				faults = cmp.Or(faults, err)
				accepted = accepted || err == nil
			}
		}
		switch {
		case row.Default == Refused && faults == nil:
			t.fail("the key %s is refused by its row, and accepted by the decoder: %s", path, row.Examples[i])
		case row.Default != Refused && !accepted:
			t.fail("the example %s of the key %s: %w", row.Examples[i], path, faults)
		}
	}
}

// contexts are the values that a container may have.
func (t *tracer) contexts(path string) []map[string]any {
	all := []map[string]any{{}}
	for _, v := range t.valuesAt(path) {
		if m, ok := v.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// valuesAt are the examples that reach a place.
func (t *tracer) valuesAt(path string) (all []any) {
	parent, step := split(path)
	switch {
	case path == "":
		return nil
	case step == "*":
		for _, v := range t.valuesAt(parent) {
			m, _ := v.(map[string]any)
			for _, entry := range m {
				all = append(all, entry)
			}
		}
	case step == "[]":
		for _, v := range t.valuesAt(parent) {
			items, _ := v.([]any)
			all = append(all, items...)
		}
	default:
		if row, ok := find(t.all, t.file, path); ok {
			all, _ = row.values() // examples reports what is wrong with them
		}
	}
	return all
}

// mostContexts is how many examples of the places around a key are tried.
const mostContexts = 6

// wrap puts a value where a path leads: by itself, or beside what one of the examples of the places
// around it has, counted from 1.
func (t *tracer) wrap(path string, v any, beside int) any {
	if beside > 0 && path == "" {
		context := maps.Clone(t.all[t.file].context)
		maps.Copy(context, v.(map[string]any))
		return context
	}
	if path == "" {
		return v
	}
	parent, step := split(path)
	if step == "[]" {
		return t.wrap(parent, []any{v}, beside)
	}
	around := map[string]any{}
	if contexts := t.contexts(parent); beside > 0 && len(contexts) > 1 {
		around = maps.Clone(contexts[min(beside, len(contexts)-1)])
	}
	if step == "*" {
		step = anyName
	}
	around[step] = v
	return t.wrap(parent, around, beside)
}

// anyName is the name of an entry in the place of *.
const anyName = "x"

// trace decodes a document.
func (t *tracer) trace(doc any) error {
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return fleet.Trace(t.file, text, t.root, t.known)
}

// below returns the faults at a key and below it.
func (t *tracer) below(err error, path string) error {
	var load *fleet.LoadError
	if !errors.As(err, &load) {
		return err
	}
	at := "/" + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(path, "[]", ".0"), ".*", "."+anyName), ".", "/")
	var errs []error
	for _, f := range load.Faults {
		if f.Pointer == at || strings.HasPrefix(f.Pointer, at+"/") {
			errs = append(errs, errors.New(f.String()))
		}
	}
	return errors.Join(errs...)
}
