package regular_test

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema/internal/regular"
)

func compile(t testing.TB, expression string) *syntax.Prog {
	t.Helper()
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return prog
}

// TestAlphabetOnEveryRune holds classes to what Go's engine says about each of
// the million code points.
func TestAlphabetOnEveryRune(t *testing.T) {
	for _, expression := range []string{
		`[aA]`, `[xX][0-9a-f]`, `(?i)k`, `(?i)s\x{17F}`, `[^kK]`, `(?i)\x{1E9E}[\x{DF}]`, `(?i:straße)|[Σσς]`, `.`, `(?s).`, `[^\x{0}-\x{10FFFF}]`,
		`\b[kK]\b`, `\p{Lu}|\P{Greek}`, `[\x{D800}-\x{DFFF}]a`, `\x{10FFFF}|\x{0}`, `a`, ``,
	} {
		prog := compile(t, expression)
		a, err := regular.NewAlphabet(prog)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		if a.Words != strings.Contains(expression, `\b`) {
			t.Errorf("%s: Words is %v", expression, a.Words)
		}
		if !slices.IsSorted(a.Samples) || !slices.IsSorted(a.Cuts) || a.Cuts[0] != 0 || a.Cuts[len(a.Cuts)-1] > unicode.MaxRune {
			t.Errorf("%s: samples %U, cuts %U", expression, a.Samples, a.Cuts)
		}
		for r := rune(0); r <= unicode.MaxRune; r++ {
			class := a.Class(r)
			if r < a.Samples[class] {
				t.Fatalf("%s: %U is in class %d, but the lowest of these is said to be %U", expression, r, class, a.Samples[class])
			}
			if a.Words && syntax.IsWordChar(r) != syntax.IsWordChar(a.Samples[class]) {
				t.Fatalf("%s: %U is in a class with %U", expression, r, a.Samples[class])
			}
			for pc := range prog.Inst {
				inst := &prog.Inst[pc]
				if !reads(inst) {
					continue
				}
				if got := a.Consumes(uint32(pc), class); got != inst.MatchRune(r) {
					t.Fatalf("%s: instruction %d (%s) on %U: %v", expression, pc, inst, r, got)
				}
			}
		}
	}
}

func reads(inst *syntax.Inst) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// TestAlphabet is the same for random programs, on the code points next to
// those that occur and their folds.
func TestAlphabet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, err := syntax.Parse(drawExpression(4).Draw(t, "expression"), syntax.Perl)
		if err != nil {
			t.Skip("a repetition of a border")
		}
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		a, err := regular.NewAlphabet(prog)
		if err != nil {
			t.Fatal(err)
		}
		runes := []rune{0, 'a', 'A', 'k', 'K', 's', 'S', unicode.MaxRune}
		for _, cut := range a.Cuts {
			runes = append(runes, cut, max(cut, 1)-1, unicode.SimpleFold(cut))
		}
		for pc := range prog.Inst {
			inst := &prog.Inst[pc]
			if a.Reads(uint32(pc)) != reads(inst) {
				t.Fatalf("%s: reads: %v", inst, a.Reads(uint32(pc)))
			}
			for _, r := range runes {
				want := reads(inst) && inst.MatchRune(r)
				if got := a.Consumes(uint32(pc), a.Class(r)); got != want {
					t.Fatalf("%s on %U: %v", inst, r, got)
				}
			}
		}
	})
}

func TestAlphabetIsBounded(t *testing.T) {
	var classes []string
	for i := range 2000 {
		classes = append(classes, `[\p{L}`+string(rune(0xF0000+i))+`]`)
	}
	prog := compile(t, strings.Join(classes, ""))
	if _, err := regular.NewAlphabet(prog); !errors.Is(err, regular.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
