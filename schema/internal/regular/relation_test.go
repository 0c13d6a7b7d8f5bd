package regular_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentd/agentd/schema/internal/regular"
)

// ample is a budget that no query of these tables uses up.
func ample() *regular.Budget { return &regular.Budget{Steps: 1 << 22} }

// TestLanguagesRelate holds pairs of expressions to how their languages relate:
// "=" the same, "<" fewer, "|" none in common, "x" some in common and some of its
// own on either side. The string that is found is held to the standard library.
func TestLanguagesRelate(t *testing.T) {
	inside := func(a, b string) bool {
		found, answer := query(t, a, "!"+b).Find(ample())
		if answer == regular.Unknown {
			t.Errorf("%s outside of %s: unknown", a, b)
		}
		if answer == regular.Found && (!regexp.MustCompile(a).MatchString(found) || regexp.MustCompile(b).MatchString(found)) {
			t.Errorf("%q is not in %s and outside of %s", found, a, b)
		}
		return answer == regular.Empty
	}
	for _, c := range []struct{ a, is, b string }{
		// repetition
		{`^a+$`, "<", `^a*$`},
		{`^a+$`, "=", `^aa*$`},
		{`^a?$`, "=", `^a{0,1}$`},
		{`^a{2,3}$`, "<", `^a{1,4}$`},
		{`^a{2,3}$`, "x", `^a{3,4}$`},
		{`^a{2,3}$`, "|", `^a{4,5}$`},
		{`^(aa)*$`, "<", `^a*$`},
		{`^(aa)*$`, "x", `^(aaa)*$`},
		{`^(aa)*a$`, "|", `^(aa)*$`},
		{`^(a*)*$`, "=", `^a*$`},
		{`^(a|b)*$`, "=", `^(a*b*)*$`},
		{`^a{3}$`, "=", `^aaa$`},
		{`^(ab){2}$`, "=", `^abab$`},
		{`^a*?$`, "=", `^a*$`},
		// alternation and classes
		{`^(a|b)$`, "=", `^[ab]$`},
		{`^(ab|ac)$`, "=", `^a[bc]$`},
		{`^[a-m]$`, "<", `^[a-z]$`},
		{`^[a-m]$`, "x", `^[h-z]$`},
		{`^[a-m]$`, "|", `^[n-z]$`},
		{`^[^a]$`, "x", `^[^b]$`},
		{`^\d$`, "<", `^\w$`},
		{`^\d$`, "|", `^\D$`},
		{`^\s$`, "|", `^\S$`},
		{`^[\d\D]$`, "=", `(?s)^.$`},
		{`^.$`, "<", `(?s)^.$`},
		{`^[[:alpha:]]$`, "=", `^[A-Za-z]$`},
		{`^\pL$`, "x", `^[a-z0-9]$`},
		{`^\p{Lu}$`, "<", `^\pL$`},
		{`^\p{Greek}$`, "|", `^\p{Latin}$`},
		{`^[\x{1F600}-\x{1F64F}]$`, "<", `^[^a]$`},
		// folding
		{`(?i)^a$`, "=", `^[aA]$`},
		{`(?i)^k$`, "=", `^[kK\x{212A}]$`},
		{`(?i)^s$`, "=", `^[sS\x{17F}]$`},
		{`(?i)^ab$`, "=", `^[aA][bB]$`},
		{`^ab$`, "<", `(?i)^AB$`},
		{`(?i)^[a-c]$`, "=", `^[a-cA-C]$`},
		{`(?i)^1$`, "=", `^1$`},
		// anchors: without one, a match may stand anywhere
		{`^a`, "<", `a`},
		{`a$`, "<", `a`},
		{`^a$`, "<", `^a`},
		{`^a`, "x", `a$`},
		{`^a`, "|", `^b`},
		{``, "=", `(?s)^.*$`},
		{`^`, "=", `$`},
		{`^$`, "<", ``},
		{`a|b`, "=", `[ab]`},
		{`ab`, "<", `a`},
		{`aa`, "<", `a`},
		{`a.*b`, "<", `b`},
		{`^a|b$`, "x", `^b|a$`},
		// borders of words
		{`\ba`, "<", `a`},
		{`\ba\b`, "<", `\ba`},
		{`\Ba`, "<", `a`},
		{`^a\b`, "<", `^a`},
		{`^a\b$`, "=", `^a$`},
		{`^\b$`, "|", `^$`},
		{`^\B$`, "=", `^$`},
		{`^a\B.$`, "=", `^a\w$`},
		{`^a\b.$`, "=", `^a[^\w\n]$`},
		{`\b`, "=", `\w`},
		{`^-\bx`, "=", `^-x`},
		{`^\bx\b y$`, "=", `^x y$`},
	} {
		there, back := inside(c.a, c.b), inside(c.b, c.a)
		_, common := query(t, c.a, c.b).Find(ample())
		got := "x"
		switch {
		case there && back:
			got = "="
		case there:
			got = "<"
		case back:
			got = ">"
		case common == regular.Empty:
			got = "|"
		}
		// The empty language is inside everything and shares nothing.
		if c.is == "|" && common == regular.Empty {
			got = "|"
		}
		if got != c.is {
			t.Errorf("%s %s %s: got %s", c.a, c.is, c.b, got)
		}
	}
}

// TestFindEnumerates excludes each string that is found, until none is left.
func TestFindEnumerates(t *testing.T) {
	for _, c := range []struct {
		terms    []string
		min, max int
		want     []string
	}{
		{[]string{`^$`}, 0, -1, []string{""}},
		{[]string{`^[ab]?$`}, 0, -1, []string{"", "a", "b"}},
		{[]string{`^[ab]{2}$`}, 0, -1, []string{"aa", "ab", "ba", "bb"}},
		{[]string{`^a*$`}, 0, 3, []string{"", "a", "aa", "aaa"}},
		{[]string{`^a*$`}, 2, 3, []string{"aa", "aaa"}},
		{[]string{`^[ab]*$`, `a`}, 0, 2, []string{"a", "aa", "ab", "ba"}},
		{[]string{`^[ab]*$`, `!a`}, 0, 2, []string{"", "b", "bb"}},
		{[]string{`^[ab]*$`, `!^a`, `!b$`}, 1, 3, []string{"ba", "baa", "bba"}},
		{[]string{`^[a-c]$`, `!b`}, 0, -1, []string{"a", "c"}},
		{[]string{`(?i)^k$`}, 0, -1, []string{"K", "k", "\u212A"}},
		{[]string{`^[\x{7F}-\x{80}]$`}, 0, -1, []string{"\u007F", "\u0080"}},
		{[]string{`^[\x{FFFF}-\x{10000}]$`}, 0, -1, []string{"\uFFFF", "\U00010000"}},
		{[]string{`^[\x{D7FF}-\x{E000}]$`}, 0, -1, []string{"\uD7FF", "\uE000"}},
		{[]string{`^[\x{10FFFE}-\x{10FFFF}]$`}, 0, -1, []string{"\U0010FFFE", "\U0010FFFF"}},
		{[]string{`^(日|本)$`}, 1, 1, []string{"日", "本"}},
		{[]string{`^(ab|a\b)$`}, 0, -1, []string{"a", "ab"}},
		{[]string{`^[a-]{2}$`, `\b-`}, 0, -1, []string{"a-"}},
		{[]string{`^[a-]{2}$`, `!\b`}, 0, -1, []string{"--"}},
		{[]string{`^a{5}$`}, 0, 4, nil},
		{[]string{`^a{5}$`}, 6, -1, nil},
		{[]string{`a`, `!a`}, 0, -1, nil},
	} {
		q := query(t, c.terms...)
		q.MinLength, q.MaxLength = c.min, c.max
		for len(q.Excluded) <= len(c.want) {
			found, answer := q.Find(ample())
			if answer != regular.Found {
				if answer != regular.Empty {
					t.Errorf("%q: answer %d", c.terms, answer)
				}
				break
			}
			if n := utf8.RuneCountInString(found); n < c.min || c.max >= 0 && n > c.max {
				t.Errorf("%q: %q has %d code points", c.terms, found, n)
			}
			q.Excluded = append(q.Excluded, found)
		}
		got := slices.Sorted(slices.Values(q.Excluded))
		if !slices.Equal(got, c.want) {
			t.Errorf("%q from %d to %d: got %q, want %q", c.terms, c.min, c.max, got, c.want)
		}
	}
}

// TestFindIsShortest: of one language, the string that is found has the fewest
// code points.
func TestFindIsShortest(t *testing.T) {
	for expression, want := range map[string]int{
		``: 0, `a`: 1, `^$`: 0, `a|bcd`: 1, `^(abc|de)$`: 2, `^a{7}`: 7, `^(ab){3,}$`: 6, `\bcat\b`: 3, `^.*x.*y$`: 2, `^(?:日本){2}$`: 4,
		`^[^a]{3}$`: 3, `a.b.c`: 5, `^(aaaa|a*b)$`: 1, `\Ba`: 2, `a\b.`: 2,
	} {
		found, answer := query(t, expression).Find(ample())
		if answer != regular.Found || utf8.RuneCountInString(found) != want || !regexp.MustCompile(expression).MatchString(found) {
			t.Errorf("%s: found %q, %d, want %d code points", expression, found, answer, want)
		}
		// One less is not possible, one more exactly if the language goes on.
		q := query(t, expression)
		q.MaxLength = want - 1
		if want > 0 {
			if shorter, answer := q.Find(ample()); answer != regular.Empty {
				t.Errorf("%s: found %q below %d code points", expression, shorter, want)
			}
		}
	}
}

// TestClassesOfAlphabets says which code points an alphabet keeps together.
func TestClassesOfAlphabets(t *testing.T) {
	for _, c := range []struct {
		expression string
		classes    int
		together   string
		apart      string
	}{
		{`(?s).`, 1, "aZ0\n日", ""},
		{`.`, 2, "aZ0日", "a\n"},
		{`a`, 2, "bcZ\n日", "ab"},
		{`[ab]`, 2, "ab", "ac"},
		{`a|b`, 2, "ab", "ac"}, // the parser makes a class of it
		{`ab`, 3, "cd", "abc"},
		{`[a-z][m-z]`, 3, "mz", "amA"},
		{`(?i)a`, 2, "aA", "ab"},
		{`(?i)k`, 2, "kK\u212A", "kj"},
		{`\d`, 2, "09", "9a"},
		{`\w`, 2, "09azAZ_", "a-"},
		{`[^\x00-\x{10FFFF}]`, 1, "a日", ""},
		{`\b`, 2, "aZ0_", "a-"},
		{`\b[ab]`, 3, "ab", "ac-"},
		{`[\x{10FFFF}]`, 2, "a日", "a\U0010FFFF"},
	} {
		a, err := regular.NewAlphabet(compile(t, c.expression))
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Samples) != c.classes {
			t.Errorf("%s: %d classes, want %d", c.expression, len(a.Samples), c.classes)
		}
		first, _ := utf8.DecodeRuneInString(c.together)
		for _, r := range c.together {
			if a.Class(r) != a.Class(first) {
				t.Errorf("%s: %U and %U are apart", c.expression, first, r)
			}
		}
		seen := map[uint16]rune{}
		for _, r := range c.apart {
			if other, twice := seen[a.Class(r)]; twice {
				t.Errorf("%s: %U and %U are together", c.expression, other, r)
			}
			seen[a.Class(r)] = r
		}
		if a.Words != strings.Contains(c.expression, `\b`) {
			t.Errorf("%s: Words is %v", c.expression, a.Words)
		}
	}
}

// TestBudgetIsShared: several searches draw on one budget, and a language keeps
// the states that it has made, so that asking again costs less.
func TestBudgetIsShared(t *testing.T) {
	q := query(t, `^[a-f]{4}-[0-9]{4}$`, `!^[a-e]`, `!9$`)
	b := regular.Budget{Steps: 1 << 20}
	first, answer := q.Find(&b)
	once := 1<<20 - b.Steps
	if answer != regular.Found || once <= 0 {
		t.Fatalf("%q, %d: %d steps", first, answer, once)
	}
	again, _ := q.Find(&b)
	if twice := 1<<20 - b.Steps; again != first || twice <= once || twice >= 2*once {
		t.Errorf("%q for %d steps, then %q for %d in all", first, once, again, twice)
	}
	b.Steps = 0
	if found, answer := q.Find(&b); answer != regular.Unknown {
		t.Errorf("with nothing left: %q, %d", found, answer)
	}
}
