package regular

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// start returns the state before anything has been read. Assertions wait in it
// even if they would hold, since whether \b holds depends on the next rune.
func (l *Language) start(b *Budget) int32 {
	l.clear()
	matched := l.follow(uint32(l.prog.Start), 0, false)
	return l.intern(true, false, matched, b)
}

// step returns the state after one more rune of the given class. Both ends are
// absorbing: once nothing can match, nothing will, and once a match has ended,
// the string matches whatever follows, because expressions search.
func (l *Language) step(from int32, class uint16, b *Budget) int32 {
	if from == stateDead || from == stateMatched {
		return from
	}
	if next := l.states[from].next[class]; next >= 0 {
		return next
	}
	s := &l.states[from]
	// The work on a transition is counted when it is first taken; later it is a
	// look-up.
	b.spend(len(s.set) + 1)
	word := l.alphabet.Words && syntax.IsWordChar(l.alphabet.Samples[class])
	to := int32(stateMatched)
	if waiting, matched := l.resolve(s, border(s, word, false)); !matched {
		l.clear()
		for _, pc := range waiting {
			if l.alphabet.Consumes(pc, class) {
				matched = l.follow(l.prog.Inst[pc].Out, 0, false) || matched
			}
		}
		if !l.anchored {
			matched = l.follow(uint32(l.prog.Start), 0, false) || matched
		}
		to = l.intern(false, word, matched, b)
	}
	l.states[from].next[class] = to
	return to
}

// accepts reports whether the string may end in a state: whether what waits there
// leads to a match over assertions that hold at the end of the text.
func (l *Language) accepts(at int32) bool {
	s := &l.states[at]
	if s.accept == 0 {
		s.accept = -1
		if _, matched := l.resolve(s, border(s, false, true)); matched {
			s.accept = 1
		}
	}
	return s.accept > 0
}

// border returns the empty matches that hold between the last rune and the next,
// which is a word character or not, or the end of the text.
func border(s *state, word, end bool) syntax.EmptyOp {
	op := syntax.EmptyNoWordBoundary
	if s.word != word {
		op = syntax.EmptyWordBoundary
	}
	if s.begin {
		op |= syntax.EmptyBeginText
	}
	if end {
		op |= syntax.EmptyEndText
	}
	return op
}

// resolve follows the empty matches that a state waits for, where they hold,
// and returns the instructions that consume a rune.
func (l *Language) resolve(s *state, holds syntax.EmptyOp) (waiting []uint32, matched bool) {
	if !slices.ContainsFunc(s.set, l.isEmptyWidth) {
		return s.set, false
	}
	l.clear()
	for _, pc := range s.set {
		matched = l.follow(pc, holds, true) || matched
	}
	return slices.Clone(l.set), matched
}

func (l *Language) isEmptyWidth(pc uint32) bool {
	return l.prog.Inst[pc].Op == syntax.InstEmptyWidth
}

// clear begins a new set. Raising the mark forgets all visits at once.
func (l *Language) clear() {
	l.set = l.set[:0]
	l.mark++
}

// follow adds the instructions that wait behind pc to the set and reports
// whether the match can end there. Empty matches wait too, unless pass is
// set: then those that hold are followed, and the others lead nowhere.
func (l *Language) follow(pc uint32, holds syntax.EmptyOp, pass bool) (matched bool) {
	for l.marks[pc] != l.mark {
		l.marks[pc] = l.mark
		inst := &l.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			matched = l.follow(inst.Out, holds, pass) || matched
			pc = inst.Arg
			continue
		case syntax.InstNop, syntax.InstCapture:
			pc = inst.Out
			continue
		case syntax.InstEmptyWidth:
			if !pass {
				l.set = append(l.set, pc)
			} else if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				pc = inst.Out
				continue
			}
		case syntax.InstMatch:
			return true
		case syntax.InstFail:
		default:
			l.set = append(l.set, pc)
		}
		return matched
	}
	return matched
}

// intern returns the state for the set under construction. A set from which no
// match can be reached is the dead state, so that complements find it at once.
func (l *Language) intern(begin, word, matched bool, b *Budget) int32 {
	switch {
	case matched:
		return stateMatched
	case len(l.set) == 0:
		return stateDead
	}
	slices.Sort(l.set)
	key := make([]byte, 1, 1+2*len(l.set))
	if begin {
		key[0] |= 1
	}
	if word {
		key[0] |= 2
	}
	for _, pc := range l.set {
		key = binary.LittleEndian.AppendUint16(key, uint16(pc))
	}
	if id, ok := l.ids[string(key)]; ok {
		return id
	}
	classes := len(l.alphabet.Samples)
	b.spend(len(l.set) + classes)
	next := make([]int32, classes)
	for i := range next {
		next[i] = -1
	}
	toEnd := int32(never)
	for _, pc := range l.set {
		toEnd = min(toEnd, l.toEnd[pc])
	}
	// Nothing in the set leads to a match.
	if toEnd == never {
		l.ids[string(key)] = stateDead
		return stateDead
	}
	id := int32(len(l.states))
	l.states = append(l.states, state{set: slices.Clone(l.set), begin: begin, word: word, toEnd: toEnd, next: next})
	l.ids[string(key)] = id
	return id
}

// alternatives returns states of one instruction each that together stand for
// a state: a word leads to a match from it if it does from one of them. A search
// may then follow them one by one, which visits states in proportion to the size
// of the program instead of its subsets. A complement cannot: to be outside is
// to match from none of them.
func (l *Language) alternatives(at int32, b *Budget) []int32 {
	if s := &l.states[at]; s.split == nil {
		set, begin, word := s.set, s.begin, s.word
		split := make([]int32, 0, len(set))
		for _, pc := range set {
			l.set = append(l.set[:0], pc)
			split = append(split, l.intern(begin, word, false, b))
		}
		l.states[at].split = split
	}
	return l.states[at].split
}
