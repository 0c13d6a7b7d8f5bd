package contain

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/format"
	"github.com/agentd/agentd/schema/internal/ir"
)

// state is what is known of a value of one sort: the atoms, merged into bounds
// and sets, and the disjunctions that are still to be decided.
//
// A search takes terms in with push until only disjunctions are left, picks an
// arm, and goes on with a copy. The merged form makes most contradictions show
// while terms are taken in, before any search.
type state struct {
	sort  sorts
	atoms []termID // the atoms that were taken in
	seen  []termID // forms and disjunctions that were taken in, so that each is once
	ors   []termID // disjunctions of which an arm is to be chosen

	in, out []*literalSet // the value is in all of in and in none of out

	low, high *term    // numbers: the stricter limits; nil without
	multiples []*term  // divisors, wanted and unwanted
	gaps      []gap    // ranges between them that are ruled out, by their begin
	apart     []termID // the disjunctions that became gaps

	length span    // strings, in code points
	texts  []*term // patterns and formats, wanted and unwanted

	count          span     // arrays
	each           []termID // what every element satisfies
	some           []termID // for each, some element satisfies it
	unique, repeat bool     // elements differ; two of them are equal

	members []memberState // objects, by name
	rest    []termID      // what members satisfy that no row names
	others  []*term       // demands for a member with a name outside a list

	tuples []*term  // arrays: terms about the places of elements, and about how many satisfy something
	size   span     // objects
	keyed  []*term  // objects: terms about members by what their names satisfy
	hidden []termID // the terms that are beyond proof
}

// span is a range of sizes, both ends included.
type span struct{ low, high int }

// meet narrows the range and reports whether a size is left.
func (s *span) meet(low, high int) bool {
	s.low, s.high = max(s.low, low), min(s.high, high)
	return s.low <= s.high
}

// memberState is what is known of one member of an object.
type memberState struct {
	name       nameID
	has, lacks bool
	goal       []termID
	// asked holds the answer about goal, where answered.
	answered bool
	answer   result
}

// init sets what the zero value does not mean.
func (st *state) init() {
	st.length, st.count, st.size = span{0, ir.Unbounded}, span{0, ir.Unbounded}, span{0, ir.Unbounded}
}

// clone returns a copy that can take in more without touching st. Most slices
// are shared and clipped, so that an append copies; members are changed in
// place and therefore copied here.
func (st *state) clone() *state {
	c := *st
	c.atoms, c.seen, c.ors = slices.Clip(c.atoms), slices.Clip(c.seen), slices.Clip(c.ors)
	c.in, c.out, c.texts = slices.Clip(c.in), slices.Clip(c.out), slices.Clip(c.texts)
	c.some, c.others, c.apart = slices.Clip(c.some), slices.Clip(c.others), slices.Clip(c.apart)
	c.multiples, c.tuples, c.keyed, c.hidden = slices.Clip(c.multiples), slices.Clip(c.tuples), slices.Clip(c.keyed), slices.Clip(c.hidden)
	c.members = slices.Clone(c.members)
	return &c
}

// pushAll takes in terms that all hold.
func (st *state) pushAll(p *prover, terms []termID) bool {
	for _, t := range terms {
		if !st.push(p, t) {
			return false
		}
	}
	return true
}

// push takes in a term and reports false if the state contradicts it. True does
// not mean that a value exists: push sees contradictions between merged atoms,
// not those that take a search. When the steps are used up, it stops taking
// terms in; the caller then gives up anyway.
func (st *state) push(p *prover, id termID) bool {
	if !p.spend(1) {
		return true
	}
	// The type alone decides often: it contradicts the term, or implies it.
	may, must := p.bounds(id)
	switch {
	case may&st.sort == 0:
		return false
	case must&st.sort != 0:
		return true
	}
	switch t := &p.terms[id]; t.op {
	case opAnd:
		return st.pushAll(p, t.args)
	case opOr:
		return st.pushOr(p, id)
	case opForm:
		// The negation of this form has been taken in before.
		if slices.Contains(st.seen, id^1) {
			return false
		}
		if slices.Contains(st.seen, id) {
			return true
		}
		st.seen = append(st.seen, id)
		return st.push(p, p.open(id))
	default:
		st.atoms = append(st.atoms, id)
		return st.pushAtom(p, *t)
	}
}

// pushOr takes in a disjunction without the arms that cannot hold. If one arm
// remains, it is a fact. If an arm is known to hold, the disjunction says
// nothing new.
func (st *state) pushOr(p *prover, id termID) bool {
	if slices.Contains(st.seen, id) {
		return true
	}
	st.seen = append(st.seen, id)
	var live []termID
	for _, arm := range p.terms[id].args {
		may, must := p.bounds(arm)
		switch {
		case must&st.sort != 0, slices.Contains(st.seen, arm):
			return true
		case may&st.sort == 0, p.isForm(arm) && slices.Contains(st.seen, arm^1):
		default:
			live = append(live, arm)
		}
	}
	if len(live) < len(p.terms[id].args) {
		// Some arms are gone. The shorter disjunction is a term of its own, and
		// may have collapsed: to one arm, or to false.
		id = p.or(live...)
		if p.terms[id].op != opOr {
			return st.push(p, id)
		}
	}
	st.ors = append(st.ors, id)
	return true
}

// pushAtom takes in a term that is neither a combination nor a form.
func (st *state) pushAtom(p *prover, t term) bool {
	switch t.op {
	case opIn:
		st.in = append(st.in, t.lits)
	case opOut:
		st.out = append(st.out, t.lits)
	case opLow:
		// Of two lower limits only the stricter one matters.
		if st.low == nil || stricter(&t, st.low, 1) {
			st.low = &t
		}
	case opHigh:
		if st.high == nil || stricter(&t, st.high, -1) {
			st.high = &t
		}
	case opLength:
		return st.length.meet(t.low, t.high)
	case opMatch, opMiss, opFormat, opNoFormat:
		st.texts = append(st.texts, &t)
		if t.op == opFormat {
			// A format also bounds the length, which can contradict maxLength
			// at once.
			return st.length.meet(format.Span(t.format))
		}
	case opCount:
		return st.count.meet(t.low, t.high)
	case opItems:
		st.each = p.conjunction(st.each, t.args...)
	case opSome:
		if !slices.Contains(st.some, t.args[0]) {
			st.some = append(st.some, t.args[0])
		}
		return st.count.meet(1, ir.Unbounded)
	case opUnique:
		st.unique = true
		return !st.repeat
	case opRepeat:
		st.repeat = true
		return !st.unique && st.count.meet(2, ir.Unbounded)
	case opRow, opHas, opLacks, opOther:
		return st.pushMember(p, &t)
	default:
		return st.pushFull(p, t)
	}
	return true
}

// pushFull is pushAtom for the terms that only the full profile needs.
func (st *state) pushFull(p *prover, t term) bool {
	switch t.op {
	case opMultiple, opNotMultiple:
		st.multiples = append(st.multiples, &t)
	case opSize:
		return st.size.meet(t.low, t.high)
	case opEvery, opExists:
		st.keyed = append(st.keyed, &t)
	case opAt, opFrom, opTally:
		st.tuples = append(st.tuples, &t)
		if t.op == opTally && t.low > 0 {
			return st.count.meet(min(t.from+t.low, ir.Unbounded-1), ir.Unbounded)
		}
	case opPasses, opFails:
		st.hidden = append(st.hidden, p.intern(t))
	}
	return true
}

// stricter reports whether limit a allows fewer numbers than b. sign is 1 for
// lower limits and -1 for upper ones. At the same number, the open limit is
// stricter.
func stricter(a, b *term, sign int) bool {
	order := a.limit.Decimal.Compare(b.limit.Decimal) * sign
	return order > 0 || order == 0 && a.open && !b.open
}

// pushMember takes in a term about the members of an object. The state lists all
// names that any row mentions and keeps what each must satisfy. A row that comes
// later applies to names that came earlier and the other way round: its last
// argument to names that only others mention, and rest to names that are new.
func (st *state) pushMember(p *prover, t *term) bool {
	switch t.op {
	case opHas:
		m := st.member(t.names[0])
		m.has = true
		return !m.lacks
	case opLacks:
		m := st.member(t.names[0])
		m.lacks = true
		return !m.has
	case opOther:
		st.others = append(st.others, t)
		return true
	}
	if !p.spend((len(st.members) + len(t.names)) / 16) {
		return true
	}
	st.listMembers(t)
	for i := range st.members {
		m := &st.members[i]
		if goal := p.conjunction(m.goal, t.value(m.name)); len(goal) != len(m.goal) {
			m.goal, m.answered = goal, false
		}
	}
	st.rest = p.conjunction(st.rest, t.args[len(t.names)])
	return true
}

// listMembers adds the names of a row to the members. A row that asks nothing of a name
// and nothing of the others need not list it. Both lists are in order, and are merged from
// the end: a schema can name members by the hundred thousand, and to insert each by itself
// would take the square of that.
func (st *state) listMembers(t *term) {
	asks := func(i int) bool { return t.args[i] != termTrue || t.args[len(t.names)] != termTrue }
	missing, at := 0, 0
	for i, name := range t.names {
		for at < len(st.members) && st.members[at].name < name {
			at++
		}
		if asks(i) && (at == len(st.members) || st.members[at].name != name) {
			missing++
		}
	}
	last := len(st.members) - 1
	st.members = append(st.members, make([]memberState, missing)...)
	for i, to := len(t.names)-1, len(st.members)-1; to > last; i-- {
		for last >= 0 && st.members[last].name > t.names[i] {
			st.members[to] = st.members[last]
			to, last = to-1, last-1
		}
		if asks(i) && (last < 0 || st.members[last].name != t.names[i]) {
			st.members[to] = memberState{name: t.names[i], goal: st.rest}
			to--
		}
	}
}

// value returns what a row asks of the member with a name.
func (t *term) value(name nameID) termID {
	if i, ok := slices.BinarySearch(t.names, name); ok {
		return t.args[i]
	}
	return t.args[len(t.names)]
}

// member returns what is known of a member, to be changed.
func (st *state) member(name nameID) *memberState {
	i, ok := slices.BinarySearchFunc(st.members, name, func(m memberState, n nameID) int { return int(m.name - n) })
	if !ok {
		// No row names it: a row makes all its names known.
		st.members = slices.Insert(st.members, i, memberState{name: name, goal: st.rest})
	}
	return &st.members[i]
}

// known is member without the entry for a name that is not listed yet.
func (st *state) known(name nameID) memberState {
	i, ok := slices.BinarySearchFunc(st.members, name, func(m memberState, n nameID) int { return int(m.name - n) })
	if !ok {
		return memberState{name: name, goal: st.rest}
	}
	return st.members[i]
}
