package model

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
)

// A namer gives every type that needs a name a unique one. Names depend on what a
// contract says and not on the order in which it says it: a file whose keys were sorted
// has the same digest, and its client must not call something else by the same name.
type namer struct {
	claims []ident.Claim
	set    []func(names map[string]string) // hands the names out
}

// claim asks for a name of a type, which to gets in the end.
func (s *namer) claim(key, name string, to ...*string) {
	s.claims = append(s.claims, ident.Claim{Key: key, Name: name})
	s.set = append(s.set, func(names map[string]string) {
		for _, field := range to {
			*field = names[key]
		}
	})
}

// assign hands out all names that were claimed, and returns them.
func (s *namer) assign(taken []string) (names []string) {
	all := ident.Distinct(s.claims, taken...)
	for _, set := range s.set {
		set(all)
	}
	for _, name := range all {
		names = append(names, name)
	}
	return names
}

// capabilityIdents returns the idents of capabilities by their names.
func capabilityIdents(names []string) map[string]string {
	var claims []ident.Claim
	for _, name := range names {
		claims = append(claims, ident.Claim{Key: name, Name: ident.Pascal(name)})
	}
	return ident.Distinct(claims)
}

// assignNames names the definitions and then the types inside payloads and definitions.
// The order of the steps lets a payload's own name win over a definition's, and that
// over one that is derived from a path.
func assignNames(all []*Named) {
	taken := []string{"Capabilities"}
	var definitions namer
	for _, n := range all {
		if n.root == nil {
			taken = append(taken, n.Name)
		}
	}
	for _, n := range all {
		if n.root != nil {
			definitions.claim(n.root.Name+"#"+n.definition, n.root.Name+ident.Pascal(n.definition), &n.Name)
		}
	}
	taken = append(taken, definitions.assign(taken)...)

	all = slices.SortedFunc(slices.Values(all), func(a, b *Named) int { return strings.Compare(a.Name, b.Name) })
	var paths namer
	for _, n := range all {
		nameTop(n)
	}
	for _, n := range all {
		// For languages whose classes cannot include null: the class needs a name
		// beside that of the nullable alias.
		rest, nullable := n.Type.Nullable()
		if nullable && rest.Kind == Object {
			paths.claim(n.Name+" without null", n.Name+"Object", &n.NotNull)
		}
		paths.inside(rest, place{n.Name, n.Name})
	}
	paths.assign(taken)
}

// nameTop gives a named type's own name to what it stands for.
func nameTop(n *Named) {
	if to := unnamed(n.Type); to != nil {
		for _, field := range to {
			*field = n.Name
		}
	}
}

// unnamed returns where the name of t goes if its kind needs one and it has none. A type
// reached by several paths keeps its first name.
func unnamed(t *Type) []*string {
	rest, _ := t.Nullable()
	if t = t.Flatten(); t.Kind == Union {
		t.notNull = rest // the same one from now on, so that it keeps its name
	}
	switch rest.Kind {
	case Object, Enum, Union:
		if rest.Name != "" {
			return nil
		}
		if t.Kind == Union {
			// The union with null has no other name; emitters look at either.
			return []*string{&rest.Name, &t.Name}
		}
		return []*string{&rest.Name}
	}
	return nil
}

// A place is where a type stands: name is the words that lead to it, and key tells apart
// the places whose words are alike.
type place struct{ name, key string }

func (p place) step(word, key string) place { return place{p.name + word, p.key + key} }

// name claims a name for t, found at a place, and for the types inside it.
func (s *namer) name(t *Type, at place) {
	if to := unnamed(t); to != nil {
		for _, field := range to {
			*field = at.name // until the names are assigned, it is known to have one
		}
		s.claim(at.key, at.name, to...)
	} else if rest, _ := t.Nullable(); rest.Kind == Object || rest.Kind == Enum || rest.Kind == Union {
		return // met before
	}
	rest, _ := t.Nullable()
	s.inside(rest, at)
}

// inside names the parts of t. The words are the members' names, in the order of these,
// Item for an element, Value for members of any name.
func (s *namer) inside(t *Type, at place) {
	switch t.Kind {
	case Array:
		s.name(t.Elem, at.step("Item", "[]"))
	case Object:
		for _, m := range t.sorted() {
			s.name(m.Type, at.step(ident.Pascal(m.Name), "."+strconv.Quote(m.Name)))
		}
		if t.Elem != nil {
			s.name(t.Elem, at.step("Value", "{}"))
		}
	case Union:
		// The order of a union's parts is part of its contract, unlike that of
		// members.
		labels := ident.NewScope()
		for i, label := range t.Labels() {
			s.name(t.Of[i], at.step(labels.Unique(label), "|"+strconv.Itoa(i)))
		}
	}
}

// sorted returns the members in the order of their names.
func (t *Type) sorted() []Member {
	return slices.SortedFunc(slices.Values(t.Members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
}
