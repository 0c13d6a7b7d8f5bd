package regular

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// ErrUnsupported is returned for an expression that this package cannot turn
// into an automaton: one that is too large, or that looks at line borders.
var ErrUnsupported = errors.New("regular: unsupported expression")

// maxProgram bounds the instructions of one expression.
const maxProgram = 1 << 14

// The first states of every automaton.
const (
	stateDead    = 0 // no continuation matches
	stateMatched = 1 // every continuation matches
)

// Language is the set of strings in which an expression matches somewhere. It
// grows as searches walk it and is not safe for concurrent use.
type Language struct {
	prog     *syntax.Prog
	anchored bool // a match can start at the beginning only
	words    bool // \b or \B occurs

	cuts    []rune  // where the behaviour may change, ascending, from 0
	classOf []int16 // the class of the runes from each cut on
	classes int
	runes   []rune // one rune of each class

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
		switch border := syntax.EmptyOp(inst.Arg); {
		case border&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0:
			return nil, ErrUnsupported
		case border&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0:
			l.words = true
		}
	}
	if err := l.classify(); err != nil {
		return nil, err
	}
	l.states = []state{{accept: -1, toEnd: never, split: []int32{}}, {accept: 1, split: []int32{stateMatched}}}
	l.measure()
	return l, nil
}

// measure finds how many runes each instruction is from a match, at least:
// borders count as if they held.
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

// classify cuts the code points into classes that every instruction treats
// alike.
func (l *Language) classify() error {
	distinct := map[string]*syntax.Inst{}
	for i := range l.prog.Inst {
		switch inst := &l.prog.Inst[i]; inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			var key strings.Builder
			key.WriteByte(byte(inst.Op))
			key.WriteByte(byte(inst.Arg))
			for _, r := range inst.Rune {
				key.WriteRune(r)
			}
			distinct[key.String()] = inst
		}
	}
	keys := make([]string, 0, len(distinct))
	cuts := []rune{0}
	for key, inst := range distinct {
		keys = append(keys, key)
		cuts = appendCuts(cuts, inst)
	}
	slices.Sort(keys)
	if l.words {
		cuts = append(cuts, '0', '9'+1, 'A', 'Z'+1, '_', '_'+1, 'a', 'z'+1)
	}
	slices.Sort(cuts)
	l.cuts = slices.Compact(cuts)
	if len(l.cuts)*(len(keys)+1) > 1<<21 {
		return ErrUnsupported
	}
	classes := map[string]int16{}
	print := make([]byte, len(keys)+1)
	for _, cut := range l.cuts {
		for i, key := range keys {
			print[i] = 0
			if distinct[key].MatchRune(cut) {
				print[i] = 1
			}
		}
		print[len(keys)] = 0
		if l.words && syntax.IsWordChar(cut) {
			print[len(keys)] = 1
		}
		class, ok := classes[string(print)]
		if !ok {
			class = int16(len(classes))
			classes[string(print)] = class
			l.runes = append(l.runes, cut)
		}
		l.classOf = append(l.classOf, class)
	}
	l.classes = len(classes)
	return nil
}

// appendCuts adds the borders of what an instruction matches.
func appendCuts(cuts []rune, inst *syntax.Inst) []rune {
	switch inst.Op {
	case syntax.InstRuneAnyNotNL:
		return append(cuts, '\n', '\n'+1)
	case syntax.InstRuneAny:
		return cuts
	}
	if len(inst.Rune) == 1 {
		r := inst.Rune[0]
		cuts = append(cuts, r, r+1)
		if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				cuts = append(cuts, f, f+1)
			}
		}
		return cuts
	}
	for i := 0; i+1 < len(inst.Rune); i += 2 {
		cuts = append(cuts, inst.Rune[i], inst.Rune[i+1]+1)
	}
	return cuts
}

// class returns the class of a rune.
func (l *Language) class(r rune) int16 {
	i, found := slices.BinarySearch(l.cuts, r)
	if !found {
		i--
	}
	return l.classOf[i]
}
