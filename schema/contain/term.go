package contain

import (
	"encoding/binary"
	"slices"

	"github.com/agentd/agentd/schema/internal/format"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// termID numbers a term. Terms are hash-consed: equal terms have one number, so
// that equality is a comparison of integers, and sets of terms are sorted lists
// of them. The memo of goals depends on both.
type termID int32

// The first terms. Behind them stand two for each form, the form itself and then
// its negation. Negating one of these terms, false and true included, flips the
// lowest bit of its number.
const (
	termFalse termID = iota
	termTrue
	firstForm
)

// op is the kind of a term.
type op uint8

// A term about one sort of value, such as opLow, is true of all values of other
// sorts, as the keywords of JSON Schema are. Its negation is not the opposite
// term alone, therefore, but the opposite together with the sort: what fails
// minimum 5 is a number below 5, never a string.
const (
	opFalse op = iota
	opTrue
	opForm     // the value passes the form, or with an odd number fails it
	opAnd      // all args hold
	opOr       // one of args holds
	opSorts    // the value is of one of the sorts
	opIn       // the value is in lits
	opOut      // the value is not in lits
	opLow      // number ≥ limit, or > with open
	opHigh     // number ≤ limit, or < with open
	opMultiple // the number is a multiple of divisor
	opNotMultiple
	opLength   // low ≤ code points ≤ high
	opMatch    // the string matches the pattern
	opMiss     // the string does not
	opFormat   // the string has the format
	opNoFormat // the string does not
	opCount    // low ≤ elements ≤ high
	opItems    // each element satisfies args[0]
	opSome     // some element does
	opUnique   // no two elements are equal
	opRepeat   // two are
	opAt       // the element at from satisfies args[0], if there is one
	opFrom     // each element from there on satisfies args[0]
	opTally    // from there on, low ≤ elements that satisfy args[0] ≤ high
	opRow      // members satisfy args by names; the others the last of args
	opHas      // the member names[0] exists
	opLacks    // it does not
	opOther    // some member not in names exists and satisfies args[0]
	opSize     // low ≤ members ≤ high
	opEvery    // each member whose name satisfies args[0] has a value that satisfies args[1]
	opExists   // some member has a name that satisfies args[0] and a value that satisfies args[1]
	// The value passes, or fails, the form from, of which some keyword is beyond
	// proof. All other keywords of the form are terms of their own.
	opPasses
	opFails
)

// term is one statement about a value, in negation normal form: negations stand
// only at the leaves, where they have become opposites. Which fields are set
// depends on op.
type term struct {
	op        op
	open      bool
	low, high int
	from      int // an index of elements, or a form
	args      []termID
	names     []nameID // ascending
	limit     *ir.Bound
	divisor   *ir.Multiple
	lits      *literalSet
	pattern   *pattern.Pattern
	format    format.Name
	origin    place // of patterns and formats

	// may holds at least the sorts of which the term can be true, must at most
	// those of which it always is. Both may be imprecise in these directions
	// only: a search skips what may lacks and drops what must has. They are
	// computed when first needed for opForm, opAnd and opOr.
	may, must sorts
	known     bool

	not     termID // the negation, where negated is set
	negated bool
}

// place is where a schema stands: in which of the two, and where in it.
type place struct {
	side    Side
	pointer string
}

// formTerm returns the term of a form, or with negative that of its negation.
func formTerm(form int32, negative bool) termID {
	id := firstForm + termID(form)*2
	if negative {
		id++
	}
	return id
}

// formOf returns the term of a form, or true or false where the form is one of
// the two boolean schemas.
func (p *prover) formOf(form int32, negative bool) termID {
	if form < 0 {
		return termTrue
	}
	// The boolean schemas need no form: true and false are terms already.
	switch n := p.forms[form].node; {
	case n.Any && !negative, n.Never && negative:
		return termTrue
	case n.Any, n.Never:
		return termFalse
	}
	return formTerm(form, negative)
}

// isForm reports whether a term is a form or the negation of one; then id^1 is
// its negation.
func (p *prover) isForm(id termID) bool {
	return id >= firstForm && id < firstForm+termID(2*len(p.forms))
}

// sortOfOp returns the sort of values that a kind of term is about, or 0 if it is
// about all values.
func sortOfOp(o op) sorts {
	switch {
	case o >= opLow && o <= opNotMultiple:
		return sortNumber
	case o >= opLength && o <= opNoFormat:
		return sortString
	case o >= opCount && o <= opTally:
		return sortArray
	case o >= opRow && o <= opExists:
		return sortObject
	}
	return 0
}

// intern returns the number of a term, new or known. The key holds all that the
// term means and nothing else: where a pattern stands, for one, is no part of
// it, so that the same pattern in both schemas is one term.
func (p *prover) intern(t term) termID {
	// Lists end in a zero, which no entry is, so that two lists cannot run into
	// one another.
	key := append(p.key[:0], byte(t.op))
	if t.open {
		key[0] |= 0x80
	}
	for _, a := range t.args {
		key = binary.AppendUvarint(key, uint64(a)+1)
	}
	key = append(key, 0)
	for _, n := range t.names {
		key = binary.AppendUvarint(key, uint64(n)+1)
	}
	key = append(key, 0)
	switch t.op {
	case opSorts:
		key = append(key, byte(t.may))
	case opIn, opOut:
		for _, id := range t.lits.ids {
			key = binary.AppendUvarint(key, uint64(id)+1)
		}
	case opLow, opHigh:
		key = t.limit.Decimal.AppendKey(key)
	case opMultiple, opNotMultiple:
		key = binary.AppendUvarint(key, t.divisor.Coefficient)
		key = binary.AppendVarint(key, t.divisor.Exp)
	case opLength, opCount, opSize, opTally, opAt, opFrom, opPasses, opFails:
		key = binary.AppendUvarint(key, uint64(t.low))
		key = binary.AppendUvarint(key, uint64(t.high))
		key = binary.AppendUvarint(key, uint64(t.from))
	case opMatch, opMiss:
		key = append(key, t.pattern.RE2...)
	case opFormat, opNoFormat:
		key = append(key, t.format...)
	}
	p.key = key
	if id, ok := p.termIDs[string(key)]; ok {
		return id
	}
	p.spend(1 + len(key)/64)
	// What an atom can be true of follows from its kind. Combinations are left
	// to bounds.
	switch s := sortOfOp(t.op); {
	case s != 0:
		t.may, t.must, t.known = allSorts, allSorts&^s, true
	case t.op == opSorts:
		t.must, t.known = t.may, true
	case t.op == opIn:
		t.may, t.known = t.lits.sorts, true
	case t.op == opPasses || t.op == opFails:
		t.may, t.known = allSorts, true
	case t.op == opOut:
		t.may, t.must, t.known = allSorts, allSorts&^t.lits.sorts, true
	}
	id := termID(len(p.terms))
	p.terms = append(p.terms, t)
	p.termIDs[string(key)] = id
	return id
}

// and returns the conjunction of terms, flattened, sorted and without repeats.
func (p *prover) and(args ...termID) termID { return p.combine(opAnd, termTrue, termFalse, args) }

// or returns the disjunction of terms, likewise.
func (p *prover) or(args ...termID) termID { return p.combine(opOr, termFalse, termTrue, args) }

// combine builds a conjunction or a disjunction. A form next to its own
// negation decides the whole at once, which happens often when two schemas
// share parts.
func (p *prover) combine(o op, unit, zero termID, args []termID) termID {
	flat := make([]termID, 0, len(args))
	for _, a := range args {
		switch {
		case a == zero:
			return zero
		case a == unit:
		case p.terms[a].op == o:
			flat = append(flat, p.terms[a].args...)
		default:
			flat = append(flat, a)
		}
	}
	// Sorted arguments make the same combination one term, however it was
	// written.
	slices.Sort(flat)
	flat = slices.Compact(flat)
	// A form and its negation have neighbouring numbers, and so stand side by
	// side in the sorted list.
	for i := 1; i < len(flat); i++ {
		if flat[i-1] == flat[i]^1 && p.isForm(flat[i]) {
			return zero
		}
	}
	switch len(flat) {
	case 0:
		return unit
	case 1:
		return flat[0]
	}
	return p.intern(term{op: o, args: flat})
}

// ofSorts returns the term of being a value of one of some sorts.
func (p *prover) ofSorts(s sorts) termID {
	switch s {
	case 0:
		return termFalse
	case allSorts:
		return termTrue
	}
	return p.intern(term{op: opSorts, may: s})
}

// items returns the term of an array whose elements all satisfy a term.
func (p *prover) items(each termID) termID {
	if each == termTrue {
		return termTrue
	}
	return p.intern(term{op: opItems, args: []termID{each}})
}

// row returns the term of an object whose members with the given names satisfy
// the arguments in their order, and all other members the last argument. A
// member that is absent satisfies anything.
func (p *prover) row(names []nameID, args []termID) termID {
	// A row that asks nothing of any member is no term at all: most objects
	// declare members without constraints.
	trivial := true
	for _, a := range args {
		trivial = trivial && a == termTrue
	}
	if trivial {
		return termTrue
	}
	return p.intern(term{op: opRow, names: names, args: args})
}

// has returns the term of an object that has a member.
func (p *prover) has(name nameID) termID {
	return p.intern(term{op: opHas, names: []nameID{name}})
}

// lacks returns the term of an object that does not have a member.
func (p *prover) lacks(name nameID) termID {
	return p.intern(term{op: opLacks, names: []nameID{name}})
}

// bounds returns the sorts of which a term can be true, and those of which it
// always is. It is the cheapest of all tests, and prunes most of a union whose
// branches have different types.
func (p *prover) bounds(id termID) (may, must sorts) {
	t := &p.terms[id]
	if t.known {
		return t.may, t.must
	}
	switch t.op {
	case opForm:
		// This ends for recursive schemas too, because a form opens only to the
		// forms that judge the same value, and Compile refuses loops among
		// these.
		may, must = p.bounds(p.open(id))
	case opAnd:
		may, must = allSorts, allSorts
		for _, a := range t.args {
			m, n := p.bounds(a)
			may, must = may&m, must&n
		}
	case opOr:
		for _, a := range t.args {
			m, n := p.bounds(a)
			may, must = may|m, must|n
		}
	}
	t = &p.terms[id] // terms may have moved
	t.may, t.must, t.known = may, must, true
	return may, must
}

// member returns the term of an object that has a member which satisfies a term.
func (p *prover) member(name nameID, value termID) termID {
	return p.and(p.has(name), p.row([]nameID{name}, []termID{value, termTrue}))
}
