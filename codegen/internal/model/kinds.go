package model

import "github.com/agentd/agentd/schema"

// kinds is a set of kinds of JSON values. It distinguishes exactly what the
// keyword type does; a number is an integer or has a fraction, so that
// {"type": "number", "allOf": [{"type": "integer"}]} comes out as integer.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindInteger
	kindFraction // numbers that are not integers
	kindString
	kindArray
	kindObject

	kindNumber = kindInteger | kindFraction
	allKinds   = kindNull | kindBoolean | kindNumber | kindString | kindArray | kindObject
)

// kindOf returns the kinds that a name of the keyword type stands for.
func kindOf(t schema.Type) kinds {
	switch t {
	case schema.TypeNull:
		return kindNull
	case schema.TypeBoolean:
		return kindBoolean
	case schema.TypeInteger:
		return kindInteger
	case schema.TypeNumber:
		return kindNumber
	case schema.TypeString:
		return kindString
	case schema.TypeArray:
		return kindArray
	}
	return kindObject
}

// kindOrder is the order of a union's parts where the schema names no types.
func kindOrder() []schema.Type {
	return []schema.Type{
		schema.TypeObject, schema.TypeArray, schema.TypeString, schema.TypeNumber, schema.TypeInteger,
		schema.TypeBoolean, schema.TypeNull,
	}
}

// kinds returns the kinds that n's values can have, or a superset. The result is
// kept: a schema can refer to one definition from many places.
func (b *builder) kinds(n schema.Node) kinds {
	if k, ok := b.memo[n]; ok {
		return k
	}
	k := b.countKinds(n)
	b.memo[n] = k
	return k
}

// countKinds intersects what each keyword of n allows.
func (b *builder) countKinds(n schema.Node) kinds {
	if accepts, ok := n.Boolean(); ok {
		if accepts {
			return allKinds
		}
		return 0
	}
	if _, target, ok := n.Ref(); ok {
		return b.kinds(target)
	}
	k := allKinds
	if types := n.Types(); types != nil {
		k = 0
		for _, t := range types {
			k |= kindOf(t)
		}
	}
	if literals := literals(n); literals != nil {
		var of kinds
		for _, l := range literals {
			of |= literalKind(l)
		}
		k &= of
	}
	for _, branch := range n.AllOf() {
		k &= b.kinds(branch)
	}
	for _, branches := range [][]schema.Node{n.OneOf(), n.AnyOf()} {
		if branches == nil {
			continue
		}
		var any kinds
		for _, branch := range branches {
			any |= b.kinds(branch)
		}
		k &= any
	}
	return k
}

// literals are the values of const, or else those of enum.
func literals(n schema.Node) []schema.Literal {
	if c, ok := n.Const(); ok {
		return []schema.Literal{c}
	}
	return n.Enum()
}

func literalKind(l schema.Literal) kinds {
	if l.Type == schema.TypeNumber {
		return kindFraction
	}
	return kindOf(l.Type)
}
