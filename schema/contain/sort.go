package contain

import (
	"bytes"
	"slices"

	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// literalSet is a set of JSON values, by number: equal values have one number,
// however they are written.
type literalSet struct {
	ids   []uint32            // ascending, as numbered by the prover
	sorts sorts               // those that occur
	big   map[uint32]struct{} // the same ids, if there are more than eight
}

func (s *literalSet) has(id uint32) bool {
	if s.big != nil {
		_, ok := s.big[id]
		return ok
	}
	return slices.Contains(s.ids, id)
}

// literalSet returns the values of const or enum.
func (p *prover) literalSet(rule *ir.EnumRule) *literalSet {
	if set := p.ruleSets[rule]; set != nil {
		return set
	}
	ids := make([]uint32, 0, len(rule.Values))
	for _, l := range rule.Values {
		if !p.spend(1 + len(l.Raw)/64) {
			break // the set is cut short, and contained answers nothing after that
		}
		ids = append(ids, p.identify(l.Raw))
	}
	set := p.newLiteralSet(ids)
	if p.ruleSets == nil {
		p.ruleSets = map[*ir.EnumRule]*literalSet{}
	}
	p.ruleSets[rule] = set
	return set
}

// newLiteralSet makes a set of numbered values; it takes over ids.
func (p *prover) newLiteralSet(ids []uint32) *literalSet {
	slices.Sort(ids)
	set := &literalSet{ids: slices.Compact(ids)}
	for _, id := range set.ids {
		set.sorts |= sortOf(p.values[id])
	}
	// Few values are compared faster than hashed.
	if len(set.ids) > 8 {
		set.big = make(map[uint32]struct{}, len(set.ids))
		for _, id := range set.ids {
			set.big[id] = struct{}{}
		}
	}
	return set
}

// identify numbers a JSON value, so that equal values have equal numbers, and
// remembers it.
func (p *prover) identify(raw []byte) uint32 {
	// identify cannot fail: the table is not frozen, and raw has been checked.
	id, _, _ := p.ident.Identify(raw, 0)
	if _, known := p.values[id]; !known {
		t, _ := jsontree.Build(raw, 0)
		if p.values == nil {
			p.values = map[uint32]*jsontree.Tree{}
		}
		p.values[id] = t
	}
	return id
}

// sorts is a set of the kinds of value that the prover distinguishes. Integers
// and fractions are two of them, since the keyword type separates them and the
// searches for one and the other have little in common.
type sorts uint8

const (
	sortString sorts = 1 << iota
	sortInteger
	sortObject
	sortArray
	sortBoolean
	sortFraction // a number that is no integer
	sortNull

	sortNumber = sortInteger | sortFraction
	allSorts   = 1<<7 - 1
)

// sortsOf converts the keyword type.
func sortsOf(t ir.TypeSet) sorts {
	var s sorts
	for _, pair := range [...]struct {
		types ir.TypeSet
		sorts sorts
	}{
		{ir.TypeNull, sortNull}, {ir.TypeBoolean, sortBoolean}, {ir.TypeNumber, sortNumber}, {ir.TypeInteger, sortInteger},
		{ir.TypeString, sortString}, {ir.TypeArray, sortArray}, {ir.TypeObject, sortObject},
	} {
		if t&pair.types != 0 {
			s |= pair.sorts
		}
	}
	return s
}

// sortOf returns the sort of a value. 1.0 is an integer.
func sortOf(t *jsontree.Tree) sorts {
	if t.Kind != jsontree.Number {
		return sortsOf(ir.TypeOf(t.Kind))
	}
	if decimal.Parse(bytes.TrimSpace(t.Raw)).IsInteger() {
		return sortInteger
	}
	return sortFraction
}
