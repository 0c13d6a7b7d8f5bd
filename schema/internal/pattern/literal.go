package pattern

import (
	"bytes"
	"regexp/syntax"
)

// literals are characters that stand in every text with a match. Searching for them
// costs a fraction of what an automaton does, so that it comes first.
type literals struct {
	prefix []byte // what every match starts with; nil if that is no text
	whole  bool   // every match is just the prefix
	inner  []byte // what every match holds besides, at the longest place
}

// searched is the length of a text from which a search for inner pays. The search is
// an additional pass where it succeeds.
const searched = 64

// newLiterals finds the literals of a pattern.
func newLiterals(tree *syntax.Regexp) literals {
	var l literals
	var run []byte
	first := true // the run starts where the match does
	end := func() {
		switch {
		case first:
			l.prefix = run
		case len(run) > len(l.inner):
			l.inner = run
		}
		run, first = nil, false
	}
	parts := sequence(nil, tree)
	for _, part := range parts {
		if part.Op != syntax.OpLiteral || part.Flags&syntax.FoldCase != 0 {
			end()
			continue
		}
		for _, r := range part.Rune {
			run = append(run, string(r)...)
		}
	}
	l.whole = first && len(run) > 0
	end()
	return l
}

// sequence appends the parts that follow each other in every match of a pattern.
func sequence(parts []*syntax.Regexp, re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			parts = sequence(parts, sub)
		}
		return parts
	}
	return append(parts, re)
}

// search returns where a match in text can start, and false if there can be none. No
// assertion stands before a prefix, so that what comes before it in the text does
// not count.
func (l *literals) search(text []byte) (rest []byte, ok bool) {
	if len(l.prefix) > 0 {
		at := bytes.Index(text, l.prefix)
		if at < 0 {
			return nil, false
		}
		text = text[at:]
	}
	if len(l.inner) > 0 && len(text) >= searched && !bytes.Contains(text, l.inner) {
		return nil, false
	}
	return text, true
}
