package schema

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// dfa decides a pattern with one table look-up for each character. Go's
// engine answers all questions about a match; validation asks only whether
// there is one, and asks it for every string.
type dfa struct {
	// next holds a row for each state and a column for each class of
	// characters. Once the automaton is complete, a state is the offset of its
	// row, so that a step needs no multiplication.
	next    []uint16
	classes int
	final   []bool // by number of the state: whether a match ends where the text ends
	start   uint16
	ascii   [utf8.RuneSelf]uint8 // the class of each character of ASCII
	starts  []rune               // first characters of the runs beyond ASCII
	kinds   []uint8              // the class of each run
}

// maxPatternSteps bounds the work on one automaton, to a few milliseconds, and
// maxSchemaSteps that on all of a schema. Length limits of some 200 characters
// fit.
const (
	maxPatternSteps = 1 << 18
	maxSchemaSteps  = 1 << 22
)

// maxTable is the largest table in which every row has an offset of 16 bits.
const maxTable = 1 << 16

// Two states need no row: from both there is no way out.
const (
	dfaReject = 0
	dfaAccept = 1
)

// match reports whether text, which is valid UTF-8, holds a match.
func (d *dfa) match(text []byte) bool {
	state, accept := int(d.start), dfaAccept*d.classes
	for i := 0; i < len(text); {
		class := uint8(0)
		if c := text[i]; c < utf8.RuneSelf {
			class = d.ascii[c]
			i++
		} else {
			r, size := utf8.DecodeRune(text[i:])
			class = d.class(r)
			i += size
		}
		state = int(d.next[state+int(class)])
		if state <= accept {
			return state == accept
		}
	}
	return d.final[state/d.classes]
}

// class finds the run that a character beyond ASCII belongs to.
func (d *dfa) class(r rune) uint8 {
	at, exact := slices.BinarySearch(d.starts, r)
	if !exact {
		at--
	}
	return d.kinds[at]
}

// dfaBuilder makes a dfa out of the program of Go's engine, by the subset
// construction. A state is a set of instructions that wait for the next
// character, and what the last one was, because assertions look at both.
type dfaBuilder struct {
	prog   *syntax.Prog
	budget *int // steps that remain; below zero the pattern is too large
	dfa    *dfa
	sample []rune // a character of each class
	number map[string]uint16
	queue  []dfaState
	seen   []bool // by instruction, during resolve
	stack  []uint32
}

// dfaState is a state before it has a number.
type dfaState struct {
	waiting []uint32
	begin   bool // no character was read
	word    bool // the last character belongs to a word
}

// newDFA returns the automaton for a pattern, or nil where it would be too
// large: then Go's engine runs. What it costs is taken off budget, so that a
// schema with many patterns stays cheap to compile.
func newDFA(tree *syntax.Regexp, budget *int) *dfa {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	remaining := min(*budget, maxPatternSteps)
	*budget -= remaining
	b := &dfaBuilder{
		prog: prog, budget: &remaining, dfa: &dfa{},
		number: map[string]uint16{}, seen: make([]bool, len(prog.Inst)),
	}
	ok := b.classify() && b.explore()
	*budget += max(remaining, 0)
	if !ok {
		return nil
	}
	return b.dfa
}

// spend takes steps off the budget, and reports whether it holds.
func (b *dfaBuilder) spend(steps int) bool {
	*b.budget -= steps
	return *b.budget >= 0
}

// classify groups the characters that no instruction tells apart. A pattern
// such as ^[a-z]+$ has two classes, so that its rows have two columns instead
// of one for each of a million characters. Word characters are kept apart from
// others, because assertions on words look at them.
func (b *dfaBuilder) classify() bool {
	// Between two neighbouring cuts, all characters are alike.
	cuts := []rune{0, utf8.RuneSelf, '\n', '\n' + 1}
	for _, pair := range [][2]rune{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}} {
		cuts = append(cuts, pair[0], pair[1]+1)
	}
	var readers []*syntax.Inst
	for i := range b.prog.Inst {
		inst := &b.prog.Inst[i]
		if !reads(inst.Op) {
			continue
		}
		readers = append(readers, inst)
		for k := 0; k < len(inst.Rune); k += 2 {
			last := inst.Rune[min(k+1, len(inst.Rune)-1)]
			cuts = append(cuts, inst.Rune[k], last+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	if !b.spend(len(cuts) * (len(readers) + 1)) {
		return false
	}
	kinds := map[string]uint8{}
	signature := make([]byte, len(readers)+1)
	for k, first := range cuts {
		if first > unicode.MaxRune {
			break
		}
		signature[0] = bit(syntax.IsWordChar(first))
		for i, inst := range readers {
			signature[i+1] = bit(inst.MatchRune(first))
		}
		kind, known := kinds[string(signature)]
		if !known {
			if len(kinds) > 250 {
				return false
			}
			kind = uint8(len(kinds))
			kinds[string(signature)] = kind
			b.sample = append(b.sample, first)
		}
		b.dfa.assign(first, cuts[k+1:], kind)
	}
	b.dfa.classes = len(kinds)
	return true
}

// assign gives the characters from first to the next cut their class.
func (d *dfa) assign(first rune, later []rune, kind uint8) {
	if first >= utf8.RuneSelf {
		d.starts = append(d.starts, first)
		d.kinds = append(d.kinds, kind)
		return
	}
	for r := first; r < later[0]; r++ {
		d.ascii[r] = kind
	}
}

// bit is 1 for true, as a byte of a key.
func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// reads reports whether an instruction consumes a character.
func reads(op syntax.InstOp) bool {
	switch op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// explore numbers the states that can be reached and fills in their rows.
func (b *dfaBuilder) explore() bool {
	row := make([]uint16, b.dfa.classes)
	b.dfa.next = append(append(b.dfa.next, row...), row...)
	b.dfa.final = []bool{false, true}
	b.dfa.start = b.state(dfaState{waiting: []uint32{uint32(b.prog.Start)}, begin: true})
	for n := 0; n < len(b.queue); n++ {
		s := b.queue[n]
		at := (n + 2) * b.dfa.classes // the first two states have no way out
		for class, r := range b.sample {
			if !b.spend(len(b.prog.Inst)) || len(b.dfa.next) > maxTable {
				return false
			}
			to := b.step(s, r)
			b.dfa.next[at+class] = to
		}
		_, b.dfa.final[n+2] = b.resolve(s, -1)
	}
	return b.dfa.seal()
}

// seal turns numbers of states into offsets of rows.
func (d *dfa) seal() bool {
	if len(d.next) > maxTable {
		return false
	}
	for i := range d.next {
		d.next[i] *= uint16(d.classes)
	}
	d.start *= uint16(d.classes)
	return true
}

// step returns where a state goes on a character. A match before the character
// settles the matter, whatever follows.
func (b *dfaBuilder) step(s dfaState, r rune) uint16 {
	readers, matched := b.resolve(s, r)
	if matched {
		return dfaAccept
	}
	next := dfaState{word: syntax.IsWordChar(r)}
	for _, pc := range readers {
		if inst := &b.prog.Inst[pc]; inst.MatchRune(r) {
			next.waiting = append(next.waiting, inst.Out)
		}
	}
	if b.prog.StartCond()&syntax.EmptyBeginText == 0 {
		next.waiting = append(next.waiting, uint32(b.prog.Start)) // a match may start anywhere
	}
	return b.state(next)
}

// state returns the number of a state, new or not.
func (b *dfaBuilder) state(s dfaState) uint16 {
	if len(s.waiting) == 0 {
		return dfaReject
	}
	slices.Sort(s.waiting)
	s.waiting = slices.Compact(s.waiting)
	key := []byte{bit(s.begin), bit(s.word)}
	for _, pc := range s.waiting {
		key = append(key, byte(pc), byte(pc>>8), byte(pc>>16))
	}
	n, known := b.number[string(key)]
	if !known {
		n = uint16(len(b.queue) + 2)
		b.number[string(key)] = n
		b.queue = append(b.queue, s)
		b.dfa.next = append(b.dfa.next, make([]uint16, b.dfa.classes)...)
		b.dfa.final = append(b.dfa.final, false)
	}
	return n
}

// resolve follows the instructions that consume nothing, between the last
// character and the next, which is negative at the end of the text. It returns
// those that wait for a character, and whether the pattern has matched.
func (b *dfaBuilder) resolve(s dfaState, next rune) (readers []uint32, matched bool) {
	holds := assertions(s, next)
	clear(b.seen)
	stack := append(b.stack[:0], s.waiting...)
	defer func() { b.stack = stack }()
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if b.seen[pc] {
			continue
		}
		b.seen[pc] = true
		switch inst := &b.prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			readers = append(readers, pc)
		}
	}
	return readers, false
}

// assertions returns what holds between the last character and the next.
func assertions(s dfaState, next rune) syntax.EmptyOp {
	holds := syntax.EmptyNoWordBoundary
	if s.word != (next >= 0 && syntax.IsWordChar(next)) {
		holds = syntax.EmptyWordBoundary
	}
	if s.begin {
		holds |= syntax.EmptyBeginText
	}
	if next < 0 {
		holds |= syntax.EmptyEndText
	}
	return holds
}
