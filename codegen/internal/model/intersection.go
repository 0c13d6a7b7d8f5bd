package model

import (
	"cmp"
	"slices"
)

// intersection returns the type that accepts what all of types accept. One with
// structure stays an Intersection, which TypeScript can express, and is merged
// for the other languages when all types exist.
func (b *builder) intersection(types ...*Type) *Type {
	var parts []*Type
	seen := map[string]bool{}
	for _, t := range types {
		of := []*Type{t}
		if t.Kind == Intersection {
			of = t.Of
		}
		for _, p := range of {
			if p.Kind == Never {
				return neverType
			}
			if k := p.key(); p.Kind != Any && !seen[k] {
				seen[k] = true
				parts = append(parts, p)
			}
		}
	}
	switch len(parts) {
	case 0:
		return anyType
	case 1:
		return parts[0]
	}
	t := &Type{Kind: Intersection, Of: parts}
	if !slices.ContainsFunc(parts, structured) {
		return newMerger().flatten(t) // scalars read better merged than as an intersection
	}
	b.intersections = append(b.intersections, t)
	return t
}

// structured reports whether a type holds others, or may.
func structured(t *Type) bool {
	switch t.Kind {
	case Object, Array, Ref, Union, Intersection:
		return true
	}
	return false
}

// A merger computes intersections. Where that would not end, or grow out of
// proportion, it returns one side, which accepts more: in recursive types beyond
// mergeDepth, for unions whose product exceeds mergeProduct, and for everything
// once mergeBudget steps are spent.
type merger struct {
	budget int
	open   map[*Type]bool // being flattened now
}

const (
	mergeBudget  = 2000
	mergeDepth   = 6
	mergeProduct = 64
)

func newMerger() *merger { return &merger{budget: mergeBudget, open: map[*Type]bool{}} }

// flatten sets Flat where it is not known yet.
func (m *merger) flatten(t *Type) *Type {
	if t.Kind != Intersection {
		return t
	}
	if t.Flat != nil {
		return t.Flat
	}
	if m.open[t] {
		return anyType // t inside itself: its other parts bound it
	}
	m.open[t] = true
	defer delete(m.open, t)
	flat := m.flatten(t.Of[0])
	for _, p := range t.Of[1:] {
		flat = m.merge(flat, p, 0)
	}
	t.Flat = flat
	return flat
}

// merge returns a type for the values that both a and b accept, or a wider one.
// depth counts references and members followed, not calls.
func (m *merger) merge(a, b *Type, depth int) *Type {
	a, b = m.flatten(a), m.flatten(b)
	m.budget--
	switch {
	case a.Kind == Never || b.Kind == Never:
		return neverType
	case a.Kind == Any:
		return b
	// Giving up returns one side, which accepts at least the intersection.
	case b.Kind == Any || depth > mergeDepth || m.budget < 0:
		return a
	case a.Kind == Ref && b.Kind == Ref && a.Named == b.Named:
		return a
	case a.Kind == Ref:
		return m.merge(a.Named.Type, b, depth+1)
	case b.Kind == Ref:
		return m.merge(a, b.Named.Type, depth+1)
	case a.Kind == Union || b.Kind == Union:
		return m.unions(a, b, depth)
	case a.Kind == Object && b.Kind == Object:
		return m.objects(a, b, depth+1)
	case a.Kind == Array && b.Kind == Array:
		return m.arrays(a, b, depth+1)
	}
	return scalars(a, b)
}

// arrays merges two arrays. One that always has the same number of elements leaves none
// for another number.
func (m *merger) arrays(a, b *Type, depth int) *Type {
	out := &Type{Kind: Array, Elem: m.merge(a.Elem, b.Elem, depth)}
	if a.Tuple == nil {
		a, b = b, a
	}
	if a.Tuple == nil {
		return out
	}
	if b.Tuple != nil && len(b.Tuple) != len(a.Tuple) {
		return neverType
	}
	out.Tuple = []*Type{}
	for i, elem := range a.Tuple {
		other := b.Elem
		if b.Tuple != nil {
			other = b.Tuple[i]
		}
		if elem = m.merge(elem, other, depth); elem.Kind == Never {
			return neverType
		}
		out.Tuple = append(out.Tuple, elem)
	}
	return out
}

// unions merges each part of a with each part of b, as (a|b)&(c|d) is ac|ad|bc|bd.
func (m *merger) unions(a, b *Type, depth int) *Type {
	as, bs := []*Type{a}, []*Type{b}
	if a.Kind == Union {
		as = a.Of
	}
	if b.Kind == Union {
		bs = b.Of
	}
	if len(as)*len(bs) > mergeProduct {
		return a
	}
	var out []*Type
	for _, x := range as {
		for _, y := range bs {
			out = append(out, m.merge(x, y, depth))
		}
	}
	return UnionOf(out...)
}

// objects merges two objects member by member. A member that only one of them names
// has to fit the other's Elem as well. An object that requires a member without
// values is Never.
func (m *merger) objects(a, b *Type, depth int) *Type {
	out := &Type{Kind: Object}
	if a.Elem != nil && b.Elem != nil {
		// No value fits both: no further member can exist, so the object is closed.
		if out.Elem = m.merge(a.Elem, b.Elem, depth); out.Elem.Kind == Never {
			out.Elem = nil
		}
	}
	add := func(x Member, other *Type) bool {
		y := Member{Type: other.Elem}
		if at := slices.IndexFunc(other.Members, func(y Member) bool { return y.Name == x.Name }); at >= 0 {
			y = other.Members[at]
		}
		if y.Type == nil {
			y.Type = neverType
		}
		x.Type, x.Required = m.merge(x.Type, y.Type, depth), x.Required || y.Required
		x.Description = cmp.Or(x.Description, y.Description)
		x = x.withNotes(y.notes)
		if x.Type.Kind == Never && out.Elem == nil && !x.Required {
			return true // a closed object has no such member anyway
		}
		out.Members = append(out.Members, x)
		return x.Type.Kind != Never || !x.Required
	}
	for _, x := range a.Members {
		if !add(x, b) {
			return neverType
		}
	}
	for _, y := range b.Members {
		if !slices.ContainsFunc(a.Members, func(x Member) bool { return x.Name == y.Name }) && !add(y, a) {
			return neverType
		}
	}
	return out
}

// scalars intersects types of which at least one holds no others.
func scalars(a, b *Type) *Type {
	if a.Kind == Enum && b.Kind == Enum {
		return commonValues(a, b)
	}
	// The narrower type comes first, which halves the cases below.
	if b.Kind == Enum || a.Kind == Number && b.Kind == Integer {
		a, b = b, a
	}
	switch {
	case a.Kind == Integer && b.Kind == Integer:
		return &Type{Kind: Integer, Big: a.Big && b.Big}
	case a.Kind == b.Kind, a.Kind == Integer && b.Kind == Number, a.Kind == Enum && within(a, b):
		return a
	// An enum that holds fractions: kept whole, although some of its values may be
	// no integers.
	case a.Kind == Enum && a.Base == Number && b.Kind == Integer:
		return a
	}
	return neverType
}

// within reports whether the values of an enum are of t's kind.
func within(enum, t *Type) bool {
	return enum.Base == t.Kind || enum.Base == Integer && t.Kind == Number
}

// commonValues returns the enum of the values that both enums have, or Never. It
// compares texts, which literalType has made canonical.
func commonValues(a, b *Type) *Type {
	if a.Base == Number && b.Base == Integer {
		a, b = b, a
	}
	if a.Base != b.Base && (a.Base != Integer || b.Base != Number) {
		return neverType
	}
	out := &Type{Kind: Enum, Base: a.Base}
	for _, v := range a.Values {
		if slices.Contains(b.Values, v) {
			out.Values = append(out.Values, v)
		}
	}
	if out.Values == nil {
		return neverType
	}
	return out
}
