package pattern

import (
	"encoding/binary"
	"math/bits"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/agentd/agentd/schema/internal/regular"
)

// program is a pattern prepared for the subset construction: the instructions
// of Go's compiler, and the classes of code points that they tell apart.
type program struct {
	inst     []syntax.Inst
	start    uint32
	anchored bool // a match can start only where the text starts
	alphabet *regular.Alphabet
	classes  int

	ascii [utf8.RuneSelf]uint8 // the class of each ASCII character
	beyond
}

// maxProgram is the number of instructions that [subsets] can number.
const maxProgram = 1 << 16

// newProgram compiles a parsed pattern. It fails if the pattern distinguishes
// too many characters.
func newProgram(tree *syntax.Regexp) (*program, error) {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxProgram {
		return nil, regular.ErrUnsupported
	}
	alphabet, err := regular.NewAlphabet(prog)
	if err != nil {
		return nil, err
	}
	p := &program{
		inst: prog.Inst, start: uint32(prog.Start),
		anchored: prog.StartCond()&syntax.EmptyBeginText != 0,
		alphabet: alphabet, classes: len(alphabet.Samples),
	}
	for c := range p.ascii {
		p.ascii[c] = uint8(alphabet.Class(rune(c))) // fits: the classes of ASCII come first
	}
	p.beyond = newBeyond(alphabet)
	return p, nil
}

// The two states from which there is no way out.
const (
	stateReject = 0
	stateAccept = 1
)

// subset is a state of the automaton: the instructions that wait for the next
// character, which is all that matters of the text before it, and what
// assertions need to know of that text.
type subset struct {
	from, to int  // where the instructions stand in subsets.held, ascending
	begin    bool // there is no character before
	word     bool // the last character is a word character
}

// subsets is the subset construction on a program. It numbers states in the
// order in which they are found, the start first.
type subsets struct {
	*program
	states []subset
	held   []uint16         // the instructions of all states, one state after the other
	number map[string]int32 // by what a state holds
	steps  int              // instructions visited so far

	seen    []uint32 // by instruction: the last mark under which it was visited
	mark    uint32
	stack   []uint32
	kept    []uint64 // the set under construction, as bits
	readers []uint16
	key     []byte
}

func newSubsets(p *program) *subsets {
	return &subsets{
		program: p, states: make([]subset, 2), number: map[string]int32{},
		seen: make([]uint32, len(p.inst)), kept: make([]uint64, len(p.inst)/64+1),
	}
}

// first returns the state in which no character has been read.
func (b *subsets) first() int32 {
	b.clear()
	if b.follow(b.start, syntax.EmptyBeginText) {
		return stateAccept
	}
	return b.intern(true, false)
}

// step prepares the set that a state leads to on a class, to be numbered by
// intern. It reports whether the text matches already: then whatever follows
// does not matter, because a match may end anywhere.
func (b *subsets) step(from subset, class uint16) (word, matched bool) {
	word = b.alphabet.Words && syntax.IsWordChar(b.alphabet.Samples[class])
	// Without assertions on words, only the end of the text can make a waiting
	// assertion hold, and here a character follows.
	waiting := b.held[from.from:from.to]
	if b.alphabet.Words || from.begin {
		if b.assume(from, border(from, word, false)) {
			return word, true
		}
		b.readers = b.list(b.readers[:0])
		waiting = b.readers
	}
	b.clear()
	for _, pc := range waiting {
		if b.alphabet.Consumes(uint32(pc), class) {
			matched = b.follow(b.inst[pc].Out, 0) || matched
		}
	}
	if !b.anchored {
		matched = b.follow(b.start, 0) || matched // a match may start anywhere
	}
	return word, matched
}

// accepts reports whether the text matches if it ends in a state.
func (b *subsets) accepts(s subset) bool { return b.assume(s, border(s, false, true)) }

// assume goes on from the assertions of a state that hold, and reports whether
// that leads to a match. The set under construction receives the readers.
func (b *subsets) assume(s subset, holds syntax.EmptyOp) (matched bool) {
	b.clear()
	for _, pc := range b.held[s.from:s.to] {
		matched = b.follow(uint32(pc), holds) || matched
	}
	return matched
}

// border returns the assertions that hold between the last character of a
// state and the next one, a word character or not, or the end of the text.
func border(s subset, word, end bool) syntax.EmptyOp {
	holds := syntax.EmptyNoWordBoundary
	if s.word != word {
		holds = syntax.EmptyWordBoundary
	}
	if s.begin {
		holds |= syntax.EmptyBeginText
	}
	if end {
		holds |= syntax.EmptyEndText
	}
	return holds
}

// clear begins a new set.
func (b *subsets) clear() {
	clear(b.kept)
	b.mark++
	if b.mark == 0 { // after 2^32 sets, old marks would look new
		clear(b.seen)
		b.mark = 1
	}
}

// follow adds to the set what waits behind an instruction without consuming a
// character, and reports whether a match ends there. Assertions that hold are
// passed; the others wait for the next character, which may make them hold.
// The stack is explicit, because nested repetitions make paths of thousands of
// instructions.
func (b *subsets) follow(pc uint32, holds syntax.EmptyOp) (matched bool) {
	stack := append(b.stack[:0], pc)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if b.seen[pc] == b.mark {
			continue
		}
		b.seen[pc] = b.mark
		b.steps++
		switch inst := &b.inst[pc]; inst.Op {
		case syntax.InstMatch:
			matched = true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			switch missing := syntax.EmptyOp(inst.Arg) &^ holds; {
			case missing == 0:
				stack = append(stack, inst.Out)
			case missing&syntax.EmptyBeginText == 0: // the start of the text never comes again
				b.kept[pc/64] |= 1 << (pc % 64)
			}
		case syntax.InstFail:
		default:
			b.kept[pc/64] |= 1 << (pc % 64)
		}
	}
	b.stack = stack
	return matched
}

// list appends the set under construction, in ascending order. Reading the bits
// in order sorts the set for free.
func (b *subsets) list(to []uint16) []uint16 {
	for i, word := range b.kept {
		for ; word != 0; word &= word - 1 {
			to = append(to, uint16(i*64+bits.TrailingZeros64(word)))
		}
	}
	return to
}

// intern returns the number of the state for the set under construction. Two
// sets with the same instructions are two states if they see assertions
// differently.
func (b *subsets) intern(begin, word bool) int32 {
	b.key = append(b.key[:0], bit(begin)|bit(word)<<1)
	from := len(b.held)
	b.held = b.list(b.held)
	if len(b.held) == from {
		return stateReject
	}
	for _, pc := range b.held[from:] {
		b.key = binary.LittleEndian.AppendUint16(b.key, pc)
	}
	n, known := b.number[string(b.key)]
	if known {
		b.held = b.held[:from]
		return n
	}
	n = int32(len(b.states))
	b.number[string(b.key)] = n
	b.states = append(b.states, subset{from: from, to: len(b.held), begin: begin, word: word})
	return n
}

// bit is 1 for true.
func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
