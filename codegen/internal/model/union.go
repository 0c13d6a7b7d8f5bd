package model

import (
	"slices"
	"strconv"
	"strings"
)

// key returns a text that is equal for types that are written alike. It removes
// repeated parts of unions and intersections; types with equal values but
// different keys merely stay separate.
func (t *Type) key() string {
	var b strings.Builder
	t.appendKey(&b)
	return b.String()
}

// appendKey writes each part in parentheses or quotes, so that two different types
// never have the same text. It does not follow references, so it ends for recursive
// types.
func (t *Type) appendKey(b *strings.Builder) {
	b.WriteByte('(')
	b.WriteString(strconv.Itoa(int(t.Kind)))
	switch t.Kind {
	case Ref:
		b.WriteString(t.Named.Name)
	case Integer:
		b.WriteString(strconv.FormatBool(t.Big))
	case Enum:
		b.WriteString(strconv.Itoa(int(t.Base)))
		for _, v := range t.Values {
			b.WriteString(strconv.Quote(v))
		}
	}
	for _, m := range t.Members {
		b.WriteString(strconv.Quote(m.Name))
		b.WriteString(strconv.FormatBool(m.Required))
		m.Type.appendKey(b)
	}
	if t.Elem != nil {
		b.WriteByte('+')
		t.Elem.appendKey(b)
	}
	for _, m := range t.Of {
		m.appendKey(b)
	}
	if t.Tuple != nil {
		b.WriteByte('=')
	}
	for _, e := range t.Tuple {
		e.appendKey(b)
	}
	b.WriteByte(')')
}

// UnionOf accepts what any of types accepts, in their order, each once.
func UnionOf(types ...*Type) *Type {
	var flat []*Type
	for _, t := range types {
		if t.Kind == Union {
			flat = append(flat, t.Of...)
		} else {
			flat = append(flat, t)
		}
	}
	has := map[Kind]bool{}
	for _, t := range flat {
		has[t.Kind] = true
	}
	// A union with Any accepts everything; its other parts would only mislead.
	if has[Any] {
		return anyType
	}
	var out []*Type
	seen := map[string]bool{}
	for _, t := range flat {
		if t.Kind == Never || covered(t, has) {
			continue
		}
		// Enums with one value each, as from a oneOf of consts, read better as one
		// enum.
		if at := slices.IndexFunc(out, func(o *Type) bool { return joinable(o, t) }); at >= 0 {
			out[at] = joinEnums(out[at], t)
			continue
		}
		if k := t.key(); !seen[k] {
			seen[k] = true
			out = append(out, t)
		}
	}
	switch len(out) {
	case 0:
		return neverType
	case 1:
		return out[0]
	}
	return &Type{Kind: Union, Of: out}
}

// covered reports whether a union with types of the kinds of has accepts what
// t does without t.
func covered(t *Type, has map[Kind]bool) bool {
	switch t.Kind {
	case Integer:
		return has[Number]
	case Enum:
		return has[t.Base] || t.Base == Integer && has[Number]
	}
	return false
}

// joinable reports whether two types are enums that one can stand for.
func joinable(a, b *Type) bool {
	if a.Kind != Enum || b.Kind != Enum {
		return false
	}
	numbers := func(t *Type) bool { return t.Base == Integer || t.Base == Number }
	return a.Base == b.Base || numbers(a) && numbers(b)
}

// joinEnums returns one enum with the values of both, in order. true and false
// together are Boolean.
func joinEnums(a, b *Type) *Type {
	values := slices.Clone(a.Values)
	for _, v := range b.Values {
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	base := a.Base
	switch {
	case b.Base == Number:
		base = Number
	case base == Boolean && len(values) == 2:
		return &Type{Kind: Boolean}
	}
	return &Type{Kind: Enum, Base: base, Values: values}
}

// prune removes parts that accept nothing from unions. They are known only after
// intersections have been worked out.
func prune(t *Type, done map[*Type]bool) {
	if t == nil || done[t] {
		return
	}
	done[t] = true
	if t.Kind == Union {
		t.Of = slices.DeleteFunc(t.Of, func(p *Type) bool { return p.Flatten().Kind == Never })
		switch len(t.Of) {
		case 0:
			*t = *neverType
		case 1:
			*t = *t.Of[0]
		}
	}
	for _, m := range t.Members {
		prune(m.Type, done)
	}
	for _, p := range slices.Concat(t.Of, t.Tuple) {
		prune(p, done)
	}
	prune(t.Elem, done)
	prune(t.Flat, done)
}
