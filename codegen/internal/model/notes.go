package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema"
)

// mostNote bounds a pattern or a default in a comment, in bytes.
const mostNote = 200

// notes returns what a schema says of values that no type does: format, bounds, pattern
// and default, in words.
func notes(n schema.Node) []string {
	all := assertions(n)
	if items, ok := n.Items(); ok {
		if each := assertions(items); each != nil {
			all = append(all, "each "+strings.Join(each, ", "))
		}
	}
	if fallback := n.Default(); fallback != nil {
		all = append(all, "default "+code(string(fallback)))
	}
	return all
}

func assertions(n schema.Node) (all []string) {
	if format := cmp.Or(string(n.Format()), n.FormatAnnotation()); format != "" {
		all = append(all, "format "+truncate.String(format, mostNote))
	}
	least, most := n.Length()
	all = append(all, count(least, most, "character")...)
	all = append(all, limits(n.Bounds())...)
	if divisor := n.MultipleOf(); divisor != "" {
		all = append(all, "multiple of "+divisor)
	}
	least, most = n.ItemCount()
	all = append(all, count(least, most, "item")...)
	if n.UniqueItems() {
		all = append(all, "all different")
	}
	if pattern := n.Pattern(); pattern != "" {
		all = append(all, "pattern "+code(pattern))
	}
	return all
}

// count says how many there may be of something; most is -1 where there is no bound.
func count(least, most int, noun string) []string {
	bounds := ""
	switch {
	case least <= 0 && most < 0:
		return nil
	case most < 0:
		bounds, most = fmt.Sprintf("at least %d", least), least
	case least <= 0:
		bounds = fmt.Sprintf("at most %d", most)
	case least == most:
		bounds = fmt.Sprint(least)
	default:
		bounds = fmt.Sprintf("%d to %d", least, most)
	}
	if most != 1 {
		noun += "s"
	}
	return []string{bounds + " " + noun}
}

// limits says between which numbers a value must be.
func limits(b schema.Bounds) (all []string) {
	if b.Minimum != "" && b.Maximum != "" && b.ExclusiveMinimum == "" && b.ExclusiveMaximum == "" {
		return []string{b.Minimum + " to " + b.Maximum}
	}
	for _, bound := range []struct{ words, value string }{
		{"at least", b.Minimum}, {"more than", b.ExclusiveMinimum}, {"at most", b.Maximum}, {"less than", b.ExclusiveMaximum},
	} {
		if bound.value != "" {
			all = append(all, bound.words+" "+bound.value)
		}
	}
	return all
}

// code marks text that is not words, as doc comments of all languages do.
func code(text string) string { return "`" + truncate.String(text, mostNote) + "`" }

// docOf is a description, and what a schema says of values, as a line of its own.
func docOf(description string, notes []string) string {
	if len(notes) == 0 {
		return description
	}
	line := strings.Join(notes, "; ")
	line = strings.ToUpper(line[:1]) + line[1:] + "."
	if description == "" {
		return line
	}
	return description + "\n" + line
}

// Doc is the description, as declared, and then what the schema says of values that the
// type does not.
func (m Member) Doc() string { return docOf(m.Description, m.notes) }

// withNotes adds the notes of another schema for the same member.
func (m Member) withNotes(notes []string) Member {
	m.notes = slices.Clone(m.notes)
	for _, note := range notes {
		if !slices.Contains(m.notes, note) {
			m.notes = append(m.notes, note)
		}
	}
	return m
}
