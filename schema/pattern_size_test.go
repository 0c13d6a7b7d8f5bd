package schema

import (
	"strings"
	"testing"
)

// TestLargestPart pins which part of a pattern a refusal names.
func TestLargestPart(t *testing.T) {
	for _, c := range []struct {
		pattern, part string
		from, size    int
	}{
		{`abc`, ``, 0, 0},
		{`a{3}`, `a{3}`, 0, 3},
		{`xa{3,}b{2,7}c{6}`, `b{2,7}`, 6, 7},
		{`\u{1F600}{4}`, `\u{1F600}{4}`, 0, 4},
		{`[a-z]{5}?x`, `[a-z]{5}`, 0, 5},
		{`a{0}b{1}`, `a{0}`, 0, 1},
		{`(?:ab[c]){3}d{8}`, `(?:ab[c]){3}`, 0, 9},
		{`x(?:(?:ab){3}c){2}`, `(?:(?:ab){3}c){2}`, 1, 14},
		{`x(?:(?:ab){3}c)(?:de){4}`, `(?:de){4}`, 15, 8},
		{`(?:a{5}b{2})(?:(?:c{2}d){3}e*)`, `(?:c{2}d){3}`, 15, 9},
		{`(?:a{9}|b){2}c{19}`, `(?:a{9}|b){2}`, 0, 20},
		{`(?:^\b$){30}a`, `(?:^\b$){30}`, 0, 30},
		{`a{99999999999999999999}`, `a{99999999999999999999}`, 0, maxSize},
		{strings.Repeat(`(?:`, 9) + `a` + strings.Repeat(`){900}`, 9), strings.Repeat(`(?:`, 3) + `a` + strings.Repeat(`){900}`, 3), 18, maxSize},
	} {
		tr := translator{src: c.pattern, budget: budget()}
		if err := tr.pattern(); err != nil {
			t.Errorf("%s: %+v", c.pattern, *err)
			continue
		}
		p := tr.sizes.largest
		if p.from != c.from || p.size != c.size || p.to > 0 && c.pattern[p.from:p.to] != c.part {
			t.Errorf("%.60s: the largest part is %.60q at %d with %d, want %.60q at %d with %d", c.pattern, c.pattern[p.from:max(p.from, p.to)], p.from, p.size, c.part, c.from, c.size)
		}
	}
}

// TestAutomataKeepToTheirBudget holds both builders to the steps that the
// patterns of a schema share: they subtract what they take, and never more than
// there is.
func TestAutomataKeepToTheirBudget(t *testing.T) {
	for _, source := range []string{
		`^[a-z]{40}$`, `[ab]*a[ab]{30}$`, `^\p{L}{1,100}\p{Lu}{1,1000}$`, `^(?:[a-z]{1,100}\.){0,9}$`, `a`, ``,
	} {
		e := newEngines(t, source)
		program := e.program
		needed := 1 << 24
		dfa := newDFA(program, &needed)
		took := 1<<24 - needed
		if took <= 0 || took > 2*maxPatternSteps {
			t.Errorf("%s: the complete automaton took %d steps", source, took)
		}
		for _, steps := range []int{0, 1, took / 2, took - 1, took} {
			left := steps
			again := newDFA(program, &left)
			if left < 0 || left > steps || again != nil && left != steps-took {
				t.Errorf("%s: of %d steps %d are left", source, steps, left)
			}
			if dfa != nil && again == nil && left != 0 {
				t.Errorf("%s: %d of %d steps are left, and yet there is no automaton", source, left, steps)
			}
			if steps < took && dfa != nil && again != nil {
				t.Errorf("%s: complete after %d of %d steps", source, steps, took)
			}
		}
		needed = 1 << 24
		if newParallel(program, &needed) == nil {
			continue
		}
		took = 1<<24 - needed
		for steps, want := range map[int]bool{0: took == 0, took - 1: false, took: true} {
			left := max(steps, 0)
			if got := newParallel(program, &left); (got != nil) != want && steps >= 0 || left < 0 {
				t.Errorf("%s: with %d of %d steps: automaton %v, %d left", source, steps, took, got != nil, left)
			}
		}
	}
}

// TestWorkOfLongRepetitions pins what a character of a long pattern costs: a few
// words for every 64 positions, since a repetition is one chain and few groups.
func TestWorkOfLongRepetitions(t *testing.T) {
	for source, most := range map[string]int{
		`^[ab]*a[ab]{1000}$`:               120,
		`^(?:[ab]{0,1000}a[ab]{0,1000})*$`: 350,
		`a.{0,400}b.{0,400}c`:              120,
		`^(x{0,30}y{0,30}){0,15}$`:         700,
	} {
		e := newEngines(t, source)
		if e.parallel == nil {
			t.Errorf("%s has no parallel automaton", source)
			continue
		}
		if work := e.parallel.links[0].work(); work > most || work < 4*e.parallel.width {
			t.Errorf("%s: a character takes %d words, want at most %d", source, work, most)
		}
	}
}
