package contain

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
)

// negate returns the negation of a term, and remembers it.
func (p *prover) negate(id termID) termID {
	if id < firstForm || p.isForm(id) {
		return id ^ 1
	}
	if t := &p.terms[id]; t.negated {
		return t.not
	}
	not := p.negation(p.terms[id])
	p.terms[id].not, p.terms[id].negated = not, true
	return not
}

// negation computes a negation by pushing it inwards: De Morgan for and and or,
// the complement for sorts and literals, and for a term about one sort the
// opposite term together with the sort.
func (p *prover) negation(t term) termID {
	only := p.ofSorts(allSorts)
	if s := sortOfOp(t.op); s != 0 {
		only = p.ofSorts(s)
	}
	opposite := t // most negations change op alone
	switch t.op {
	case opAnd, opOr:
		args := make([]termID, 0, len(t.args))
		for _, a := range t.args {
			args = append(args, p.negate(a))
		}
		if t.op == opAnd {
			return p.or(args...)
		}
		return p.and(args...)
	case opSorts:
		return p.ofSorts(allSorts &^ t.may)
	case opIn:
		opposite.op = opOut
		return p.intern(opposite)
	case opOut:
		opposite.op = opIn
		return p.intern(opposite)
	case opLow:
		opposite.op, opposite.open = opHigh, !t.open
	case opHigh:
		opposite.op, opposite.open = opLow, !t.open
	case opLength, opCount, opSize, opTally:
		// Outside of a range means below it or above it.
		return p.within(only, p.outside(t))
	// The kinds of term are declared in pairs of opposites, next to each other.
	case opMatch, opFormat, opUnique, opHas, opMultiple, opPasses:
		opposite.op++
	case opMiss, opNoFormat, opRepeat, opLacks, opNotMultiple, opFails:
		opposite.op--
	case opAt, opFrom, opEvery, opExists:
		return p.and(only, p.negationOfPart(t))
	case opItems:
		opposite.op, opposite.args = opSome, []termID{p.negate(t.args[0])}
	case opSome:
		return p.and(only, p.items(p.negate(t.args[0])))
	case opRow:
		return p.within(only, p.brokenRow(t.names, t.args))
	case opOther:
		args := make([]termID, len(t.names)+1)
		for i := range t.names {
			args[i] = termTrue
		}
		args[len(t.names)] = p.negate(t.args[0])
		return p.and(only, p.row(t.names, args))
	}
	return p.and(only, p.intern(opposite))
}

// negationOfPart is negation for terms about the places of elements and the names of
// members: what holds for all fails for one.
func (p *prover) negationOfPart(t term) termID {
	switch t.op {
	case opAt: // the element exists
		exists := p.intern(term{op: opCount, low: t.from + 1, high: ir.Unbounded})
		return p.and(exists, p.intern(term{op: opAt, from: t.from, args: []termID{p.negate(t.args[0])}}))
	case opFrom:
		return p.intern(term{op: opTally, from: t.from, low: 1, high: ir.Unbounded, args: []termID{p.negate(t.args[0])}})
	case opEvery:
		return p.intern(term{op: opExists, args: []termID{t.args[0], p.negate(t.args[1])}})
	default: // opExists
		return p.every(t.args[0], p.negate(t.args[1]))
	}
}

// within distributes only over a disjunction. The arms of a disjunction are
// pruned one by one, which works better if each arm holds all that it implies.
func (p *prover) within(only, or termID) termID {
	if p.terms[or].op != opOr {
		return p.and(only, or)
	}
	arms := slices.Clone(p.terms[or].args)
	for i, arm := range arms {
		arms[i] = p.and(only, arm)
	}
	return p.or(arms...)
}

// outside returns the term of a length or count that is below or above the limits
// of t.
func (p *prover) outside(t term) termID {
	// A range that starts at 0 or has no end can be missed on one side only.
	less, more := termFalse, termFalse
	if t.low > 0 {
		less = p.intern(term{op: t.op, low: 0, high: t.low - 1, from: t.from, args: t.args})
	}
	if t.high != ir.Unbounded {
		more = p.intern(term{op: t.op, low: t.high + 1, high: ir.Unbounded, from: t.from, args: t.args})
	}
	return p.or(less, more)
}

// brokenRow returns the term of an object in which some member, named or not,
// fails what a row asks of it.
func (p *prover) brokenRow(names []nameID, args []termID) termID {
	// One arm for each name, and one for all names that the row does not
	// mention.
	arms := make([]termID, 0, len(args))
	for i, name := range names {
		if broken := p.negate(args[i]); broken != termFalse {
			arms = append(arms, p.member(name, broken))
		}
	}
	if broken := p.negate(args[len(names)]); broken != termFalse {
		arms = append(arms, p.intern(term{op: opOther, names: names, args: []termID{broken}}))
	}
	return p.or(arms...)
}
