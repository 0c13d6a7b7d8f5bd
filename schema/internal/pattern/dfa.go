package pattern

import "unicode/utf8"

// dfa is the complete automaton of a pattern. It decides with one table
// look-up for each character and allocates nothing. Go's engine answers all
// questions about a match; validation asks only whether there is one, and asks
// it for every string.
type dfa struct {
	*program
	// next holds a row for each state and a column for each class. A state is
	// the offset of its row, so that a step needs no multiplication.
	next  []uint16
	start uint16
	final []bool // by number of the state: whether the text may end there

	// In an automaton with pairs, a column for each pair of classes follows those for
	// one. pairs holds the first column of those that begin with an ASCII character.
	width  int // of a row
	paired bool
	pairs  [utf8.RuneSelf]uint16
}

// Bounds on building a complete automaton, in visited instructions and filled
// table entries. One pattern takes a few milliseconds at most and all of a
// schema some tens, however many a peer publishes. Length limits of several
// hundred characters fit.
const (
	maxPatternSteps = 1 << 18
	maxSchemaSteps  = 1 << 22
)

// maxTable is the largest table in which every row has an offset of 16 bits.
const maxTable = 1 << 16

// newDFA returns the complete automaton of a program, or nil if building it
// would take too long or too much room. What it takes is subtracted from
// budget, which the patterns of a schema share.
func newDFA(p *program, budget *int) *dfa {
	b := newSubsets(p)
	most := min(*budget, maxPatternSteps)
	d := &dfa{program: p, width: p.classes}
	start := b.first()
	var next []int32
	for n := int32(0); int(n) < len(b.states); n++ {
		if len(next)+p.classes > maxTable {
			*budget -= min(b.steps+len(next), *budget)
			return nil
		}
		// Every state is asked what holds if the text ends there: an assertion
		// such as $ may be all that is missing.
		d.final = append(d.final, n == stateAccept || n != stateReject && b.accepts(b.states[n]))
		for class := range p.classes {
			to := n
			if n > stateAccept {
				to = b.next(n, uint16(class))
			}
			next = append(next, to)
		}
		if b.steps+len(next) > most {
			*budget -= min(b.steps+len(next), *budget)
			return nil
		}
	}
	*budget -= min(b.steps+len(next), *budget)
	for _, to := range next {
		d.next = append(d.next, uint16(int(to)*p.classes))
	}
	d.start = uint16(int(start) * p.classes)
	return d
}

// next returns the number of the state that a state leads to on a class. A match
// decides: the rest of the text cannot undo it, and need not be read.
func (b *subsets) next(n int32, class uint16) int32 {
	word, matched := b.step(b.states[n], class)
	if matched {
		return stateAccept
	}
	return b.intern(false, word)
}

// Bounds of the tables with pairs, in entries: of one pattern, and of all in a schema.
const (
	maxPairs       = 1 << 13
	maxSchemaPairs = 1 << 19
)

// pair adds the columns for two characters, if budget allows for a table of that size.
// What a step costs is the wait for its entry, so that half as many steps take half
// the time.
func (d *dfa) pair(budget *int) {
	states, classes := len(d.final), d.classes
	width := classes + classes*classes
	if size := states * width; size > maxPairs || size > *budget {
		return
	}
	*budget -= states * width
	next := make([]uint16, 0, states*width)
	row := func(state int) []uint16 { return d.next[state*classes : (state+1)*classes] }
	for state := range states {
		for _, to := range row(state) {
			next = append(next, to/uint16(classes)*uint16(width))
		}
		for _, between := range row(state) {
			for _, to := range row(int(between) / classes) {
				next = append(next, to/uint16(classes)*uint16(width))
			}
		}
	}
	d.next, d.start = next, d.start/uint16(classes)*uint16(width)
	d.width, d.paired = width, true
	for c, class := range d.ascii {
		d.pairs[c] = uint16(classes + int(class)*classes)
	}
}

// match reports whether text, which is valid UTF-8, holds a match.
func (d *dfa) match(text []byte) bool {
	next, ascii, pairs, accept := d.next, &d.ascii, &d.pairs, stateAccept*d.width
	state, bet := int(d.start), patience
	for i := 0; i < len(text); {
		to, c := 0, text[i]
		switch {
		case d.paired && i+1 < len(text) && (c|text[i+1]) < utf8.RuneSelf:
			to = int(next[state+int(pairs[c])+int(ascii[text[i+1]])])
			i += 2
		case c < utf8.RuneSelf:
			to = int(next[state+int(ascii[c])])
			i++
		default:
			class := 0
			class, i = d.wide(text, i)
			to = int(next[state+class])
		}
		if to <= accept {
			return to == accept
		}
		if i > bet && to == state {
			i = d.stay(text, i, state)
			bet = i + patience
		}
		state = to
	}
	return d.final[state/d.width]
}

// patience is how many characters an automaton reads before it bets that it stays in
// its state. The bet pays in long texts; where it is lost, the processor has guessed
// wrong, which costs as much as several look-ups.
const patience = 24

// stay passes over characters that lead from a state back to it, as most do. Here the
// processor need not wait for an entry to know where to find the next.
func (d *dfa) stay(text []byte, i, state int) int {
	row, ascii := d.next[state:state+d.classes], &d.ascii
	for {
		for i < len(text) && text[i] < utf8.RuneSelf && int(row[ascii[text[i]]]) == state {
			i++
		}
		from := i
		for d.pages != nil && i < len(text) && isThree(text, i) && int(row[d.paged(three(text, i))]) == state {
			i += 3
		}
		if i == from {
			return i
		}
	}
}
