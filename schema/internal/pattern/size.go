package pattern

import (
	"strconv"

	"github.com/agentd/agentd/internal/truncate"
)

// DefaultMaxSteps is for how many steps all automata of one schema are built. So many take
// some tenths of a second.
const DefaultMaxSteps = maxSchemaSteps

// Within returns a budget with another bound on the steps of building automata. Below
// the default, what patterns may take in memory shrinks with it.
func (b Budget) Within(steps int) Budget {
	b.steps, b.links = steps, steps
	if steps < DefaultMaxSteps {
		b.size = min(b.size, steps)
	}
	return b
}

// sizes keeps account of how many characters the parts of a pattern stand for
// once their repetitions are written out, which is what they take in an
// automaton. A refusal names the largest part.
type sizes struct {
	groups  []part // those open, the innermost last
	last    part   // to which a quantifier would apply
	largest part
}

// part is a part of the source of a pattern.
type part struct {
	from, to int
	size     int
}

// maxSize is where counting ends.
const maxSize = 1 << 24

// open begins a group.
func (s *sizes) open(from int) { s.groups = append(s.groups, part{from: from}) }

// close ends the innermost group, which is then the last part.
func (s *sizes) close() {
	s.last = s.groups[len(s.groups)-1]
	s.groups = s.groups[:len(s.groups)-1]
	s.grow(s.last.size)
}

// atom counts a character or a class.
func (s *sizes) atom(from int) {
	s.last = part{from: from, size: 1}
	s.grow(1)
}

// repeat counts a quantifier, which ends before to, on the last part.
func (s *sizes) repeat(digits string, to int) {
	count, _ := strconv.Atoi(digits) // the largest int, if there are too many digits
	if count > maxSize {
		count = maxSize
	}
	size := min(max(s.last.size, 1)*max(count, 1), maxSize)
	s.grow(size - s.last.size)
	s.last.size, s.last.to = size, to
	if size > s.largest.size {
		s.largest = s.last
	}
}

// grow adds to the innermost open group.
func (s *sizes) grow(by int) {
	if n := len(s.groups); n > 0 {
		s.groups[n-1].size = min(s.groups[n-1].size+by, maxSize)
	}
}

// tooLarge refuses a pattern that could take long for every character. Authors
// know their pattern as they wrote it, so the message quotes the source and not
// the translation.
func (t *translator) tooLarge() *Error {
	const hint = "repeat less, anchor the pattern with ^ and $, or bound the string with maxLength"
	if p := t.sizes.largest; p.to > 0 {
		return &Error{"pattern is too large to run in linear time: its part " + truncate.Quote(t.src[p.from:p.to]) +
			" at byte " + strconv.Itoa(p.from) + " stands for " + strconv.Itoa(p.size) + " characters", hint}
	}
	return &Error{"pattern is too large to run in linear time", hint}
}
