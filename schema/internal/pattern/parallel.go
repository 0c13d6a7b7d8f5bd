package pattern

import (
	"encoding/binary"
	"regexp/syntax"
	"unicode/utf8"
)

// Bounds of a [parallel] automaton, in machine words. They are the documented
// worst case of a pattern: one character costs at most maxWork operations on
// words, which is about a microsecond.
const (
	maxWords = 64
	maxWork  = 2048
	maxReads = 1 << 16
)

// maxLinkSteps bounds the work on one parallel automaton, in visited
// instructions and words of sets.
const maxLinkSteps = 1 << 20

// parallel runs a pattern whose complete automaton would be too large, such as
// [ab]*a[ab]{30}$ with its two thousand million states. It follows all ways
// through the pattern at once, with one bit for each position: a place in the
// pattern where a character is consumed.
//
// Long patterns come from counted repetitions, in which most positions lead to
// the next position and, if the repetition may end early, to whatever follows
// it. The first kind of step is one shift for 64 positions; of the second,
// positions that lead to the same places form a group and take one step
// together. The cost of a character therefore has a small bound, which is known
// when the schema is compiled, whatever the text. No table grows with the
// texts, and nothing is allocated.
type parallel struct {
	*program
	width int      // words of a set of positions
	reads []uint64 // for each class, the positions that consume it
	words []bool   // by class: whether it holds word characters
	// links are the steps between two characters, without and with a word
	// boundary there. Patterns without \b and \B need only the first.
	links [2]links
}

// links are the steps that consume nothing.
type links struct {
	chain  []uint64 // positions that lead to the next position
	groups []group  // where positions lead besides
	match  []uint64 // positions behind which the pattern has matched
	end    []uint64 // the same if the text ends there

	// The same for the start of the pattern: where the text starts, and
	// elsewhere, where matches start only if the pattern is not anchored.
	begin, later origin
}

// origin is where matches start.
type origin struct {
	first      []uint64 // positions for the next character
	match, end bool     // the pattern matches without one; does so if the text ends here
}

// group is a set of positions that lead to the same others. Only the words that
// hold any are kept, from the given index on.
type group struct {
	from    int
	members []uint64
	to      int
	targets []uint64
}

// newParallel returns the automaton, or nil if it would exceed its bounds or
// the budget, which the patterns of a schema share. Positions are numbered in
// the order of the program, in which the compiler writes the characters of a
// sequence and of a repetition one after the other; the chain depends on this
// for its speed, but not for being right.
func newParallel(p *program, budget *int) *parallel {
	var positions []uint32 // by instruction; those before it that consume
	count := uint32(0)
	for pc := range p.inst {
		positions = append(positions, count)
		if p.alphabet.Reads(uint32(pc)) {
			count++
		}
	}
	a := &parallel{program: p, width: int(count+63) / 64}
	if a.width > maxWords || a.width*p.classes > maxReads {
		return nil
	}
	a.reads = make([]uint64, a.width*p.classes)
	for pc := range p.inst {
		for class := range p.classes {
			if p.alphabet.Consumes(uint32(pc), uint16(class)) {
				a.reads[class*a.width+int(positions[pc]/64)] |= 1 << (positions[pc] % 64)
			}
		}
	}
	for class := range p.classes {
		a.words = append(a.words, p.alphabet.Words && syntax.IsWordChar(p.alphabet.Samples[class]))
	}
	b := &linker{subsets: newSubsets(p), positions: positions, width: a.width, most: min(*budget, maxLinkSteps)}
	a.links[0] = b.links(syntax.EmptyNoWordBoundary)
	if p.alphabet.Words {
		a.links[1] = b.links(syntax.EmptyWordBoundary)
	}
	*budget -= min(b.steps, *budget)
	if b.steps > b.most || a.links[0].work() > maxWork || a.links[1].work() > maxWork {
		return nil
	}
	return a
}

// work is how many words a character takes at most. To look at a group costs as
// much as several words, however small it is.
func (l *links) work() int {
	const look = 6
	work := 4 * len(l.chain)
	for _, g := range l.groups {
		work += look + len(g.members) + len(g.targets)
	}
	return work
}

// linker computes links. It follows the empty steps behind each position with
// the subset construction, which knows about assertions.
type linker struct {
	*subsets
	positions []uint32
	width     int
	most      int // steps that may be taken
}

// links follows each position to those that come next, where the assertions in
// holds are true in between. A position that leads to the one after it joins the
// chain; all its other targets are the key of its group.
func (b *linker) links(holds syntax.EmptyOp) links {
	l := links{chain: b.none(), match: b.none(), end: b.none()}
	l.begin = b.origin(holds | syntax.EmptyBeginText)
	l.later = origin{first: b.none()}
	if !b.anchored {
		l.later = b.origin(holds)
	}
	groups := map[string]int{}
	for pc := range b.inst {
		if !b.alphabet.Reads(uint32(pc)) {
			continue
		}
		at := b.positions[pc]
		o := b.follows(b.inst[pc].Out, holds)
		if o.match {
			set(l.match, at)
		}
		if o.end {
			set(l.end, at)
		}
		if has(o.first, at+1) {
			set(l.chain, at)
			o.first[(at+1)/64] &^= 1 << ((at + 1) % 64)
		}
		key := make([]byte, 0, 8*b.width)
		for _, w := range o.first {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
		n, known := groups[string(key)]
		if !known {
			n = len(l.groups)
			groups[string(key)] = n
			l.groups = append(l.groups, group{members: b.none(), targets: o.first})
		}
		set(l.groups[n].members, at)
		if b.steps += b.width; b.steps > b.most {
			return links{}
		}
	}
	l.trim()
	return l
}

// trim drops the words of groups in which there is nothing.
func (l *links) trim() {
	kept := l.groups[:0]
	for _, g := range l.groups {
		g.from, g.members = occupied(g.members)
		g.to, g.targets = occupied(g.targets)
		if len(g.targets) > 0 {
			kept = append(kept, g)
		}
	}
	l.groups = kept
}

// occupied returns the words from the first to the last that is not zero.
func occupied(words []uint64) (from int, some []uint64) {
	to := len(words)
	for to > 0 && words[to-1] == 0 {
		to--
	}
	for from < to && words[from] == 0 {
		from++
	}
	return from, words[from:to]
}

// none returns an empty set of positions.
func (b *linker) none() []uint64 { return make([]uint64, b.width) }

// origin returns where a match goes on that starts at a place where the
// assertions in holds are true.
func (b *linker) origin(holds syntax.EmptyOp) origin { return b.follows(b.start, holds) }

// follows returns the positions that wait behind an instruction, and whether the
// pattern can match there without another character: in any case, or if the text
// ends.
func (b *linker) follows(pc uint32, holds syntax.EmptyOp) origin {
	o := origin{first: b.none()}
	b.clear()
	o.match = b.follow(pc, holds)
	b.readers = b.list(b.readers[:0])
	asserts := false
	for _, reader := range b.readers {
		if b.alphabet.Reads(uint32(reader)) {
			set(o.first, b.positions[reader])
		} else {
			asserts = true
		}
	}
	if o.end = o.match; asserts && !o.match {
		b.clear()
		o.end = b.follow(pc, holds|syntax.EmptyEndText)
	}
	return o
}

// set adds a position to a set.
func set(words []uint64, at uint32) { words[at/64] |= 1 << (at % 64) }

// has reports whether a set holds a position, which may be one past the last.
func has(words []uint64, at uint32) bool {
	return int(at/64) < len(words) && words[at/64]&(1<<(at%64)) != 0
}

// match reports whether text, which is valid UTF-8, holds a match. Before each
// character it finds the positions that could consume it, by links that depend
// on whether a word boundary lies before the character, and keeps those that do
// consume it. The sets live on the stack.
func (a *parallel) match(text []byte) bool {
	var buffer [2][maxWords]uint64
	read, next := buffer[0][:a.width], buffer[1][:a.width] // the positions whose character was the last one
	word := false                                          // it is a word character
	for i := 0; i < len(text); {
		class, begins := 0, i == 0
		if c := text[i]; c < utf8.RuneSelf {
			class = int(a.ascii[c])
			i++
		} else {
			class, i = a.wide(text, i)
		}
		l := &a.links[0]
		if a.words[class] != word {
			l, word = &a.links[1], !word
		}
		start := &l.later
		if begins {
			start = &l.begin
		}
		if start.match || l.step(read, next, start.first) {
			return true
		}
		if !a.consume(next, class) {
			return false
		}
		read, next = next, read
	}
	return a.ends(read, word, len(text) == 0)
}

// consume keeps the positions of a set that consume a class. It reports false if none
// is left and no match can start any more.
func (a *parallel) consume(set []uint64, class int) bool {
	alive := uint64(0)
	for w, consumes := range a.reads[class*a.width : (class+1)*a.width] {
		set[w] &= consumes
		alive |= set[w]
	}
	return alive != 0 || !a.anchored
}

// ends reports whether the text may end behind the positions that were read last. The
// end counts as a character outside of words.
func (a *parallel) ends(read []uint64, word, empty bool) bool {
	l := &a.links[0]
	if word {
		l = &a.links[1]
	}
	if empty {
		return l.begin.end
	}
	return l.later.end || intersect(read, l.end)
}

// step finds the positions for the next character: those where matches start,
// those one further in the chain, and the targets of all groups that were read.
// It reports whether the pattern has matched before that character.
func (l *links) step(read, next, first []uint64) (matched bool) {
	carry := uint64(0)
	for w, bits := range read {
		if bits&l.match[w] != 0 {
			return true
		}
		bits &= l.chain[w]
		next[w] = first[w] | bits<<1 | carry
		// The highest position of a word leads to the lowest of the next.
		carry = bits >> 63
	}
	for i := range l.groups {
		g := &l.groups[i]
		if !intersect(read[g.from:], g.members) {
			continue
		}
		to := next[g.to:]
		for w, bits := range g.targets {
			to[w] |= bits
		}
	}
	return false
}

// intersect reports whether two sets have a member in common; a may be longer.
func intersect(a, b []uint64) bool {
	for w, bits := range b {
		if a[w]&bits != 0 {
			return true
		}
	}
	return false
}
