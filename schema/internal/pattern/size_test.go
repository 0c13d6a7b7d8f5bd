package pattern

import (
	"errors"
	"regexp/syntax"
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

// TestProgramSize pins the estimate by which patterns are counted before they are
// compiled, and holds it to what the compiler writes.
func TestProgramSize(t *testing.T) {
	for source, want := range map[string]int{
		``: 1, `a`: 2, `abc`: 4, `[a-z]`: 1, `[acegikmoqsuwy]`: 4, `a|bc`: 6, `(?:abc)*`: 5, `a{3}`: 9, `(?:ab){2,5}`: 20, `a{2,}`: 6, `a{0}`: 3,
		`(?:a{100}){10}`: 3010, `(?:(?:(?:(?:a{999}){999}){999}){999})`: 1 << 24,
	} {
		tree, err := syntax.Parse(source, syntax.Perl|syntax.WasDollar)
		if errors.As(err, new(*syntax.Error)) {
			tree = &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'a'}}
			for range 4 { // beyond what the parser takes
				tree = &syntax.Regexp{Op: syntax.OpRepeat, Min: 999, Max: 999, Sub: []*syntax.Regexp{tree}}
			}
		}
		if got := programSize(tree); got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
}

// TestWhichPatternsAreTooLarge tells a pattern that no automaton runs from one for
// which the patterns before it have left no room.
func TestWhichPatternsAreTooLarge(t *testing.T) {
	const long, huge = `[ab]*a[ab]{30}$`, `[ab]*a(?:b{9}[ab]{90}){10}(?:a?){300}c`
	for _, c := range []struct {
		name, pattern string
		left          Budget
		want          string // the message, or "" for none
	}{
		{"ample", long, *budget(), ""},
		{"no steps", long, Budget{size: 1 << 20, links: 1 << 20}, ""},
		{"no links", long, Budget{size: 1 << 20, steps: 1 << 20}, "the patterns of the schema are too large together"},
		{"no links, and a small pattern", `^a$`, Budget{size: 1 << 20, steps: 1 << 20}, ""},
		{"no size", `^a$`, Budget{steps: 1 << 20, links: 1 << 20}, "the patterns of the schema are too large together"},
		{"size for the source only", `^(?:abc){100}$`, Budget{size: 100, steps: 1 << 20, links: 1 << 20}, "the patterns of the schema are too large together"},
		{"by itself", huge, *budget(), "pattern is too large to run in linear time"},
		{"by itself, no steps", huge, Budget{size: 1 << 20, links: 1 << 20}, "the patterns of the schema are too large together"},
		{"without any repetition", `[ab]*a` + strings.Repeat(`[ab]`, 4200) + `$`, *budget(), "pattern is too large to run in linear time"},
	} {
		left := c.left
		p, refused := Compile(c.pattern, &left)
		switch {
		case refused == nil && (c.want != "" || p == nil):
			t.Errorf("%s: compiled", c.name)
		case refused != nil && (c.want == "" || !strings.HasPrefix(refused.Message, c.want)):
			t.Errorf("%s: %+v", c.name, *refused)
		}
	}
}

// TestLargestTable builds automata around the size at which the rows of a table
// no longer have offsets of 16 bits.
func TestLargestTable(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for n, complete := range map[int]bool{16: true, 17: false} {
		text := strings.Repeat(letters, n)
		p, refused := Compile("^"+text+"$", budget())
		if refused != nil {
			t.Fatal(*refused)
		}
		if (p.dfa != nil) != complete || (p.parallel != nil) == complete {
			t.Errorf("%d characters: complete automaton %v", len(text), p.dfa != nil)
		}
		if p.dfa != nil && len(p.dfa.next) > maxTable {
			t.Errorf("%d entries", len(p.dfa.next))
		}
		if !p.Match([]byte(text)) || p.Match([]byte(text[1:])) || p.Match([]byte(text+"a")) || p.Match([]byte(strings.Replace(text, "9a", "9b", 1))) {
			t.Errorf("%d characters: wrong verdict", len(text))
		}
	}
}
