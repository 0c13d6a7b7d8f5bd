package pattern

import (
	"errors"
	"regexp/syntax"
)

// Pattern is an ECMA-262 pattern and its translation. The validator runs dfa or
// parallel; the prover builds automata of its own from re2, which can be
// complemented and intersected. Tests hold both to each other.
type Pattern struct {
	Source string         // as written
	RE2    string         // the RE2 spelling of the same language
	tree   *syntax.Regexp // the parse of re2, not simplified
	dfa    *dfa           // decides; nil where it would be too large
	// parallel decides in place of dfa, through lazy where that is not nil.
	parallel *parallel
	lazy     *lazy
	literals literals
	// Work is what a character of text costs at most, in operations on machine words;
	// 0 for a pattern that costs a look-up.
	Work int
}

// Error says why a pattern is refused.
type Error struct{ Message, Hint string }

// Compile translates an ECMA-262 pattern to RE2 and compiles it.
// Patterns see code points, as with the flag u, and are not anchored. Groups
// capture nothing. The sizes of what it builds are subtracted from budget, before
// it is built.
func Compile(source string, budget *Budget) (*Pattern, *Error) {
	t := translator{src: source, budget: budget}
	if err := t.pattern(); err != nil {
		return nil, err
	}
	re2 := t.out.String()
	tree, err := syntax.Parse(re2, syntax.Perl)
	if err != nil {
		return nil, re2Error(err)
	}
	const instruction = 16 // what one takes, in units of a byte of source
	if !budget.take(instruction * programSize(tree)) {
		return nil, tooLarge()
	}
	return t.automaton(tree)
}

// automaton chooses how a pattern runs: by a complete automaton if that is
// small enough, else by one that follows all ways through the pattern at once.
// Either takes time proportional to the text. A pattern that neither can run
// is refused.
func (t *translator) automaton(tree *syntax.Regexp) (*Pattern, *Error) {
	p := &Pattern{Source: t.src, RE2: t.out.String(), tree: tree}
	trimmed := trimSearch(tree)
	p.literals = newLiterals(trimmed)
	program, err := newProgram(trimmed)
	if err != nil {
		return nil, t.tooLarge()
	}
	program.paginate(&t.budget.pages)
	if p.dfa = newDFA(program, &t.budget.steps); p.dfa != nil {
		p.dfa.pair(&t.budget.pairs)
		return p, nil
	}
	if p.parallel = newParallel(program, &t.budget.links); p.parallel == nil {
		if t.budget.steps == 0 || t.budget.links == 0 {
			return nil, tooLarge() // it might have run in a schema of its own
		}
		return nil, t.tooLarge()
	}
	p.Work = max(p.parallel.links[0].work(), p.parallel.links[1].work())
	const word = 8 // bytes
	if !t.budget.take(word * len(p.parallel.reads)) {
		return nil, tooLarge()
	}
	p.lazy = newLazy(p.parallel, &t.budget.cache)
	return p, nil
}

// Budget bounds what all patterns of a schema take together. A few
// bytes can ask for a program of thousands of instructions, and a peer may
// publish schemas of many such bytes.
type Budget struct {
	size  int // bytes of translations, and instructions at a multiple of that
	steps int // of building complete automata, see newDFA
	links int // of building the others, see newParallel
	cache int // bytes that they may remember, see newLazy
	pages int // bytes of tables for characters beyond ASCII
	pairs int // entries of tables for pairs of characters
}

// NewBudget returns the budget of one schema.
func NewBudget() Budget {
	return Budget{
		size: 4 << 20, steps: maxSchemaSteps, links: maxSchemaSteps,
		cache: maxSchemaCache, pages: maxSchemaPages, pairs: maxSchemaPairs,
	}
}

// take takes off part of the size, and reports whether it holds.
func (b *Budget) take(size int) bool {
	b.size -= size
	return b.size >= 0
}

// tooLarge is the refusal of a schema whose patterns are each small enough.
func tooLarge() *Error {
	return &Error{"the patterns of the schema are too large together", "repeat less; use minLength and maxLength"}
}

// programSize estimates how many instructions a pattern compiles to: its parts
// times their repetition. RE2 limits a single repetition to 1000, and nested
// ones only in their product, so that ((a{30}){30})… must be counted before the
// compiler writes it out.
func programSize(re *syntax.Regexp) int {
	const most = 1 << 24
	size := 1
	for _, sub := range re.Sub {
		size = min(size+programSize(sub), most)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size += len(re.Rune)
	case syntax.OpCharClass:
		size += len(re.Rune) / 8 // ranges take room as well
	case syntax.OpRepeat:
		size = min(size*max(re.Min, re.Max, 1), most)
	}
	return size
}

// re2Error explains what RE2 refuses. The translation is well-formed, so that only
// reasons of size remain.
func re2Error(err error) *Error {
	var e *syntax.Error
	if errors.As(err, &e) {
		switch e.Code {
		case syntax.ErrInvalidRepeatSize:
			return &Error{"pattern repeats more than RE2 allows", "repeat at most 1000 times in all; use minLength and maxLength"}
		case syntax.ErrLarge, syntax.ErrNestingDepth:
			return &Error{"pattern is too large for RE2", "shorten it"}
		}
		return &Error{"pattern is malformed: " + string(e.Code), ""}
	}
	return &Error{"pattern is malformed", ""}
}

// Match reports whether text, which is valid UTF-8, holds a match.
func (p *Pattern) Match(text []byte) bool {
	text, ok := p.literals.search(text)
	switch {
	case !ok:
		return false
	case p.literals.whole:
		return true
	case p.dfa != nil:
		return p.dfa.match(text)
	case p.lazy != nil:
		return p.lazy.match(text)
	}
	return p.parallel.match(text)
}
