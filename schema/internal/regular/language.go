package regular

import (
	"errors"
	"regexp/syntax"
)

// ErrUnsupported is returned for an expression that this package cannot turn
// into an automaton: one that is too large, or that asserts the start or end of
// a line within the text.
var ErrUnsupported = errors.New("regular: unsupported expression")

// maxProgram bounds the instructions of one expression.
const maxProgram = 1 << 14

// The first states of every automaton.
const (
	stateDead    = 0 // no continuation matches
	stateMatched = 1 // every continuation matches
)

// Language is the set of strings in which an expression matches somewhere. Its
// automaton is made deterministic state by state, as searches walk it: the
// complete one may have exponentially many states, of which a search meets few.
// It is not safe for concurrent use.
type Language struct {
	prog     *syntax.Prog
	anchored bool // a match can start at the beginning only
	alphabet *Alphabet

	states []state
	ids    map[string]int32
	toEnd  []int32 // from each instruction, the fewest runes to a match

	marks []uint32 // scratch: when each instruction was last visited
	mark  uint32
	set   []uint32 // scratch: the set under construction
}

// state is a set of positions in the program.
type state struct {
	set    []uint32 // instructions that wait for a rune or for a border, ascending
	begin  bool     // nothing has been read
	word   bool     // the last rune was a word character
	accept int8     // whether the string may end here: 0 unknown, 1 yes, -1 no
	toEnd  int32    // at least so many runes are missing to a match
	next   []int32  // by class; -1 is unknown
	split  []int32  // the states of one instruction each; nil is unknown
}

// never is the distance to a match that cannot come.
const never = 1 << 20

// Search returns the language of the strings in which tree matches. tree is
// not changed.
func Search(tree *syntax.Regexp) (*Language, error) {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		return nil, ErrUnsupported
	}
	l := &Language{
		prog:     prog,
		anchored: prog.StartCond()&syntax.EmptyBeginText != 0,
		ids:      map[string]int32{},
		marks:    make([]uint32, len(prog.Inst)),
	}
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		if inst.Op != syntax.InstEmptyWidth {
			continue
		}
		if syntax.EmptyOp(inst.Arg)&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0 {
			return nil, ErrUnsupported
		}
	}
	if l.alphabet, err = NewAlphabet(prog); err != nil {
		return nil, err
	}
	l.states = []state{{accept: -1, toEnd: never, split: []int32{}}, {accept: 1, split: []int32{stateMatched}}}
	l.measure()
	return l, nil
}

// measure finds how many runes each instruction is from a match, at least:
// borders count as if they held. The search visits near ones first, and drops
// those that cannot keep to a maximum length, which is sound because the
// distance is never too high.
func (l *Language) measure() {
	l.toEnd = make([]int32, len(l.prog.Inst))
	for i := range l.toEnd {
		l.toEnd[i] = never
	}
	for changed := true; changed; {
		changed = false
		for i := len(l.prog.Inst) - 1; i >= 0; i-- {
			inst := &l.prog.Inst[i]
			d := l.toEnd[i]
			switch inst.Op {
			case syntax.InstMatch:
				d = 0
			case syntax.InstFail:
			case syntax.InstAlt, syntax.InstAltMatch:
				d = min(d, l.toEnd[inst.Out], l.toEnd[inst.Arg])
			case syntax.InstNop, syntax.InstCapture, syntax.InstEmptyWidth:
				d = min(d, l.toEnd[inst.Out])
			default:
				d = min(d, l.toEnd[inst.Out]+1)
			}
			if d < l.toEnd[i] {
				l.toEnd[i], changed = d, true
			}
		}
	}
}
