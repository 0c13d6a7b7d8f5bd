package regular_test

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema/internal/regular"
)

func language(t testing.TB, expression string) *regular.Language {
	t.Helper()
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	l, err := regular.Search(tree)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return l
}

// query reads "expression" and "!expression" for a complement.
func query(t testing.TB, expressions ...string) regular.Query {
	t.Helper()
	q := regular.Query{MaxLength: -1}
	for _, e := range expressions {
		e, complement := strings.CutPrefix(e, "!")
		q.Terms = append(q.Terms, regular.Term{Language: language(t, e), Complement: complement})
	}
	return q
}

func TestFind(t *testing.T) {
	tests := []struct {
		terms     []string
		min, max  int
		excluded  []string
		want      string
		wantEmpty bool
	}{
		{terms: []string{`^[a-c]+$`}, max: -1, want: "a"},
		{terms: []string{`^[a-c]+$`}, max: -1, excluded: []string{"a", "b"}, want: "c"},
		{terms: []string{`^[a-c]?$`}, max: -1, excluded: []string{"a", "b", "c", ""}, wantEmpty: true},
		{terms: []string{`^[a-c]*$`, `!^[ab]*$`}, max: -1, want: "c"},
		{terms: []string{`^[ab]*$`, `!^[a-c]*$`}, max: -1, wantEmpty: true},
		{terms: []string{`^(ab)*$`}, min: 3, max: -1, want: "abab"},
		{terms: []string{`^(ab)*$`}, min: 3, max: 3, wantEmpty: true},
		{terms: []string{`a.*b`, `^b`}, max: -1, want: "bab"},
		{terms: []string{`^abc`, `!^ab`}, max: -1, wantEmpty: true},
		{terms: []string{`abc`, `!^ab`, `!c$`}, max: -1, want: "dabcd"},
		{terms: []string{`\bcat\b`, `!^cat$`}, max: -1, want: "cat-"},
		{terms: []string{`\bcat\b`, `!\bcat\b`}, max: -1, wantEmpty: true},
		{terms: []string{`cat`, `!\bcat`}, max: -1, want: "bcat"},
		{terms: []string{`a\Bb`, `!ab`}, max: -1, wantEmpty: true},
		{terms: []string{`a\bb`}, max: -1, wantEmpty: true},
		{terms: []string{`(?i)^k$`, `![kK]`}, max: -1, want: "\u212A"},
		{terms: []string{`^.$`, `!^[\x{0}-\x{FFFF}]$`}, max: -1, want: "\U00010000"},
		{terms: []string{`^[\x{D800}-\x{DFFF}]$`}, max: -1, wantEmpty: true},
		{terms: []string{`^[^\x{0}-\x{10FFFF}]$`}, max: -1, wantEmpty: true},
		{terms: []string{``}, min: 2, max: 2, want: "aa"},
		{terms: []string{`^(a|b)*a(a|b){12}$`, `^(a|b)*b(a|b){11}$`}, max: -1, want: "abaaaaaaaaaaa"},
		{terms: []string{`^\pL$`, `![a-zA-Z]`, `!\p{Greek}`}, max: -1, want: "à"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.terms, test.min, test.max), func(t *testing.T) {
			q := query(t, test.terms...)
			q.MinLength, q.MaxLength, q.Excluded = test.min, test.max, test.excluded
			got, answer := q.Find(&regular.Budget{Steps: 1 << 20})
			if test.wantEmpty && answer != regular.Empty || !test.wantEmpty && (answer != regular.Found || got != test.want) {
				t.Errorf("got %q, %d; want %q, empty %v", got, answer, test.want, test.wantEmpty)
			}
		})
	}
}

func TestFindKeepsToItsBudget(t *testing.T) {
	// Nothing qualifies, but to see that takes 2^24 states.
	q := query(t, `^[ab]*$`, `!^(a|b)*a(a|b){24}$`, `!^(a|b)*b(a|b){24}$`)
	q.MinLength = 25
	b := regular.Budget{Steps: 100_000}
	if got, answer := q.Find(&b); answer != regular.Unknown {
		t.Fatalf("got %q, %d; want unknown", got, answer)
	}
	if b.Steps < -200_000 {
		t.Errorf("overdrawn: %d steps are left", b.Steps)
	}
	done := make(chan struct{})
	close(done)
	if got, answer := q.Find(&regular.Budget{Steps: 1 << 30, Done: done}); answer != regular.Unknown {
		t.Errorf("after Done: got %q, %d; want unknown", got, answer)
	}
}

// TestFindWithFewSteps holds that a search cut short never calls a query empty.
func TestFindWithFewSteps(t *testing.T) {
	for steps := range 3000 {
		q := query(t, `^[a-f0-9]{8}-[a-f0-9]{4}$`, `^a`)
		if _, answer := q.Find(&regular.Budget{Steps: steps}); answer == regular.Empty {
			t.Fatalf("empty with %d steps", steps)
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	for _, expression := range []string{`(?m)^a$`, strings.Repeat(`(?:a{100}b?){9}`, 30)} {
		tree, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := regular.Search(tree); !errors.Is(err, regular.ErrUnsupported) {
			t.Errorf("%.40s: got %v", expression, err)
		}
	}
}

// drawExpression draws an expression over few letters.
func drawExpression(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		most := 9
		if depth <= 0 {
			most = 4
		}
		part := func() string { return drawExpression(depth-1).Draw(t, "part") }
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0, 1:
			return rapid.SampledFrom([]string{"a", "b", "1", "-", "A", "(?i:a)", "(?i:k)", "\u212A"}).Draw(t, "letter")
		case 2:
			return rapid.SampledFrom([]string{"[ab]", "[^a]", `\w`, `\d`, ".", "[b1]", "[aA]", "[^aA]", "[kK]", "(?i:[a-k])", "[\u017FsS]"}).Draw(t, "class")
		case 3:
			return rapid.SampledFrom([]string{`\b`, `\B`, "^", "$"}).Draw(t, "border")
		case 4:
			return ""
		case 5, 6:
			return part() + part()
		case 7:
			return "(?:" + part() + "|" + part() + ")"
		case 8:
			return "(?:" + part() + ")" + rapid.SampledFrom([]string{"*", "+", "?", "{2}", "{1,3}"}).Draw(t, "repeat")
		default:
			return "^(?:" + part() + ")$"
		}
	})
}

// words are all strings of up to n letters.
func words(n int) []string {
	all := []string{""}
	for last := all; n > 0; n-- {
		var next []string
		for _, w := range last {
			for _, letter := range []string{"a", "b", "1", "-"} {
				next = append(next, w+letter)
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// TestFindAgainstRegexp compares with the standard library on every short word.
func TestFindAgainstRegexp(t *testing.T) {
	short := words(4)
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		q := regular.Query{MaxLength: -1, MinLength: rapid.IntRange(0, 3).Draw(t, "min")}
		if rapid.Bool().Draw(t, "bounded") {
			q.MaxLength = rapid.IntRange(q.MinLength, 5).Draw(t, "max")
		}
		var matchers []*regexp.Regexp
		for range rapid.IntRange(1, 3).Draw(t, "terms") {
			expression := drawExpression(4).Draw(t, "expression")
			tree, err := syntax.Parse(expression, syntax.Perl)
			if err != nil {
				t.Skip("a repetition of a border")
			}
			l, err := regular.Search(tree)
			if err != nil {
				t.Fatal(err)
			}
			q.Terms = append(q.Terms, regular.Term{Language: l, Complement: rapid.Bool().Draw(t, "complement")})
			matchers = append(matchers, regexp.MustCompile(expression))
		}
		qualifies := func(word string) bool {
			n := utf8.RuneCountInString(word)
			if n < q.MinLength || q.MaxLength >= 0 && n > q.MaxLength {
				return false
			}
			for i, m := range matchers {
				if m.MatchString(word) == q.Terms[i].Complement {
					return false
				}
			}
			for _, e := range q.Excluded {
				if e == word {
					return false
				}
			}
			return true
		}
		// Again and again, each time without what was found before.
		for range 4 {
			got, answer := q.Find(&regular.Budget{Steps: 1 << 24})
			switch answer {
			case regular.Found:
				if !qualifies(got) {
					t.Fatalf("%q does not qualify: %v %v", got, matchers, q)
				}
				found++
				q.Excluded = append(q.Excluded, got)
				continue
			case regular.Empty:
				for _, w := range short {
					if qualifies(w) {
						t.Fatalf("called empty, but %q qualifies: %v %v", w, matchers, q)
					}
				}
			default:
				t.Fatalf("unknown: %v", matchers)
			}
			break
		}
	})
	t.Logf("%d strings found", found)
}

// FuzzFind holds what is found to the standard library.
func FuzzFind(f *testing.F) {
	f.Add(`^[a-z]+$`, `^[a-m]+$`)
	f.Add(`\bx\b`, `x`)
	f.Add(`(?i)k`, `[kK]`)
	f.Fuzz(func(t *testing.T, in, out string) {
		var terms []regular.Term
		var matchers []*regexp.Regexp
		for i, expression := range []string{in, out} {
			tree, err := syntax.Parse(expression, syntax.Perl)
			if err != nil || len(expression) > 200 {
				t.Skip()
			}
			l, err := regular.Search(tree)
			if err != nil {
				t.Skip()
			}
			m, err := regexp.Compile(expression)
			if err != nil {
				t.Skip()
			}
			terms, matchers = append(terms, regular.Term{Language: l, Complement: i == 1}), append(matchers, m)
		}
		got, answer := regular.Query{Terms: terms, MaxLength: -1}.Find(&regular.Budget{Steps: 200_000})
		if answer == regular.Found && (!matchers[0].MatchString(got) || matchers[1].MatchString(got)) {
			t.Errorf("%q is not in %q and outside of %q", got, in, out)
		}
		if answer == regular.Empty {
			for _, s := range []string{"", in, out, "a", "K"} {
				if utf8.ValidString(s) && matchers[0].MatchString(s) && !matchers[1].MatchString(s) {
					t.Errorf("called empty, but %q is in %q and outside of %q", s, in, out)
				}
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	for _, pair := range [][2]string{
		{`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`, `^[a-z0-9-]+$`},
		{`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`, `^v?[0-9.]+`},
		{`^[^/]+/[^/]+$`, `/`},
	} {
		b.Run(pair[0], func(b *testing.B) {
			for b.Loop() {
				q := query(b, pair[0], "!"+pair[1])
				if _, answer := q.Find(&regular.Budget{Steps: 1 << 20}); answer != regular.Empty {
					b.Fatal("not contained")
				}
			}
		})
	}
}
