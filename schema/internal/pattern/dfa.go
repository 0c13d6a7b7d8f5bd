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
	d := &dfa{program: p}
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

// match reports whether text, which is valid UTF-8, holds a match.
func (d *dfa) match(text []byte) bool {
	state, accept := int(d.start), stateAccept*d.classes
	for i := 0; i < len(text); {
		class := uint16(0)
		if c := text[i]; c < utf8.RuneSelf {
			class = uint16(d.ascii[c])
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
