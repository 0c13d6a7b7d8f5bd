package regular

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
)

// Bounds of one alphabet. maxMarks is the work: runs of code points times sets
// of them that instructions consume. \p{L} alone has more than a thousand runs.
const (
	maxMarks   = 1 << 21
	maxClasses = 1 << 14
)

// Alphabet divides the code points into classes that a program cannot tell
// apart, so that an automaton needs one transition for each class instead of
// one for each of a million code points.
//
// Every automaton of this module reads classes, never code points. Which
// instructions consume a class is decided here, once, from the same ranges
// that make the cuts. An automaton that asked [syntax.Inst.MatchRune] about one
// member of a class would be wrong for all the others wherever a cut is
// missing, and case folding hides cuts: the parser turns [aA] into the single
// rune A with the flag FoldCase, which lists one code point and matches two.
type Alphabet struct {
	// Cuts holds the first code point of each run that is treated alike, in
	// ascending order from 0. Run i has the class ClassOf[i].
	Cuts    []rune
	ClassOf []uint16
	// Samples holds the lowest code point of each class. The classes are
	// numbered in this order, so that those of ASCII come first.
	Samples []rune
	// Words reports whether the program tests word boundaries. If so, no class
	// holds both word characters and others.
	Words bool

	reader []int32    // by instruction: its set of code points, or -1 if it consumes none
	reads  [][]uint64 // by set of code points: the classes in it, as bits
}

// NewAlphabet returns the alphabet of a program, or [ErrUnsupported] if it
// would be too large.
func NewAlphabet(prog *syntax.Prog) (*Alphabet, error) {
	a := &Alphabet{reader: make([]int32, len(prog.Inst))}
	sets := a.sets(prog)
	interesting := sets
	if a.Words {
		interesting = append(slices.Clip(sets), wordCharacters())
	}
	cuts := []rune{0}
	for _, set := range interesting {
		for i := 0; i < len(set); i += 2 {
			cuts = append(cuts, set[i], set[i+1]+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	if last := len(cuts) - 1; cuts[last] > unicode.MaxRune {
		cuts = cuts[:last]
	}
	if len(cuts)*(len(interesting)+1) > maxMarks {
		return nil, ErrUnsupported
	}
	a.Cuts = cuts
	a.classify(interesting)
	if len(a.Samples) > maxClasses {
		return nil, ErrUnsupported
	}
	return a, nil
}

// sets returns the distinct sets of code points that instructions consume, and
// notes the set of each instruction.
func (a *Alphabet) sets(prog *syntax.Prog) [][]rune {
	var all [][]rune
	var key []byte
	known := map[string]int32{}
	for pc := range prog.Inst {
		inst := &prog.Inst[pc]
		const borders = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
		if inst.Op == syntax.InstEmptyWidth && syntax.EmptyOp(inst.Arg)&borders != 0 {
			a.Words = true
		}
		set := consumed(inst)
		if set == nil {
			a.reader[pc] = -1
			continue
		}
		key = key[:0]
		for _, r := range set {
			key = binary.LittleEndian.AppendUint32(key, uint32(r))
		}
		id, seen := known[string(key)]
		if !seen {
			id = int32(len(all))
			known[string(key)] = id
			all = append(all, set)
		}
		a.reader[pc] = id
	}
	return all
}

// consumed returns the code points that an instruction matches, as pairs of
// first and last, or nil for an instruction that consumes nothing.
func consumed(inst *syntax.Inst) []rune {
	switch inst.Op {
	case syntax.InstRuneAny:
		return []rune{0, unicode.MaxRune}
	case syntax.InstRuneAnyNotNL:
		return []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
	case syntax.InstRune, syntax.InstRune1:
	default:
		return nil
	}
	if len(inst.Rune) != 1 {
		return slices.Clip(append([]rune{}, inst.Rune...)) // not nil even if it matches nothing
	}
	// A single rune comes from a literal, the only place for FoldCase: the
	// parser has already expanded the folds of classes.
	first := inst.Rune[0]
	set := []rune{first, first}
	if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
		for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
			set = append(set, r, r)
		}
	}
	return set
}

// wordCharacters are those that \b distinguishes from others, the same in
// ECMA-262 and RE2.
func wordCharacters() []rune { return []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'} }

// classify gives runs that belong to the same sets the same class.
func (a *Alphabet) classify(sets [][]rune) {
	width := len(sets)/8 + 1
	marks := make([]byte, len(a.Cuts)*width)
	for id, set := range sets {
		for i := 0; i < len(set); i += 2 {
			run, _ := slices.BinarySearch(a.Cuts, set[i])
			for ; run < len(a.Cuts) && a.Cuts[run] <= set[i+1]; run++ {
				marks[run*width+id/8] |= 1 << (id % 8)
			}
		}
	}
	classes := map[string]uint16{}
	a.ClassOf = make([]uint16, len(a.Cuts))
	for run, first := range a.Cuts {
		key := string(marks[run*width : (run+1)*width])
		class, known := classes[key]
		if !known {
			class = uint16(min(len(a.Samples), maxClasses))
			classes[key] = class
			a.Samples = append(a.Samples, first)
		}
		a.ClassOf[run] = class
	}
	a.reads = make([][]uint64, len(sets))
	for id := range sets {
		a.reads[id] = make([]uint64, len(a.Samples)/64+1)
	}
	for run, class := range a.ClassOf {
		for id := range sets {
			if marks[run*width+id/8]&(1<<(id%8)) != 0 {
				a.reads[id][class/64] |= 1 << (class % 64)
			}
		}
	}
}

// Class returns the class of a code point.
func (a *Alphabet) Class(r rune) uint16 {
	run, found := slices.BinarySearch(a.Cuts, r)
	if !found {
		run--
	}
	return a.ClassOf[run]
}

// Reads reports whether an instruction consumes a code point.
func (a *Alphabet) Reads(pc uint32) bool { return a.reader[pc] >= 0 }

// Consumes reports whether an instruction consumes the code points of a class.
func (a *Alphabet) Consumes(pc uint32, class uint16) bool {
	id := a.reader[pc]
	return id >= 0 && a.reads[id][class/64]&(1<<(class%64)) != 0
}
