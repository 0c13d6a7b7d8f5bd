package pattern

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// budget is ample for one pattern.
func budget() *Budget {
	b := NewBudget()
	return &b
}

// TestPatternTranslation pins what ECMA-262 says a pattern matches, where RE2
// or the habit of other engines would say otherwise.
func TestPatternTranslation(t *testing.T) {
	for _, c := range []struct {
		pattern   string
		match, no []string
	}{
		{`a`, []string{"a", "bab"}, []string{"", "b"}},
		{`^a$`, []string{"a"}, []string{"a\n", "ba", "a\nb"}},
		{`^.$`, []string{"a", "é", "😀", "\x00", "\u0085", "\v"}, []string{"\n", "\r", "\u2028", "\u2029", "ab"}},
		{`^\d$`, []string{"0", "9"}, []string{"߀", "٣", "a"}},
		{`^\D$`, []string{"a", "٣"}, []string{"5"}},
		{`^\w$`, []string{"a", "Z", "_", "0"}, []string{"é", "\u017f", "\u212a", "-"}},
		{`^\W$`, []string{"é", "-"}, []string{"a"}},
		{`^\s$`, []string{" ", "\t", "\v", "\f", "\u00a0", "\ufeff", "\u2029", "\u3000"}, []string{"\u200b", "\u180e", "a", "\u0085"}},
		{`^\S$`, []string{"\u200b", "x"}, []string{"\u00a0", "\ufeff"}},
		{`^[\s]$`, []string{"\ufeff"}, []string{"a"}},
		{`^[^\s]$`, []string{"a"}, []string{"\ufeff"}},
		{`^[\S\s]$`, []string{"a", " ", "\n"}, []string{""}},
		{`^[\w-]+$`, []string{"a-b"}, []string{"a b"}},
		{`^[a-z\d_-]$`, []string{"a", "5", "_", "-"}, []string{"A"}},
		{`^[\w-z]$`, []string{"-", "z", "A"}, []string{"."}},
		{`^[\]\-\\^]$`, []string{"]", "-", `\`, "^"}, []string{"["}},
		{`^[^]$`, []string{"\n", "a"}, []string{""}},
		{`[]`, nil, []string{"", "a", "]"}},
		{`^[\b]$`, []string{"\b"}, []string{"b"}},
		{`\bfoo\b`, []string{"a foo b", "foo"}, []string{"afoo", "foo1"}},
		{`\Bo`, []string{"foo"}, []string{"o"}},
		{`^\cA\cz$`, []string{"\x01\x1a"}, []string{"A"}},
		{`^\x41\u0042\u{43}\u{1F600}$`, []string{"ABC😀"}, nil},
		{`^\ud83d\ude00$`, []string{"😀"}, []string{"😁"}},
		{`^[\ud83d\ude00-\ud83d\ude02]$`, []string{"😁"}, []string{"😃"}},
		{`^\0$`, []string{"\x00"}, []string{"0"}},
		{`^\/\.\-\$\{$`, []string{"/.-${"}, nil},
		{`^(?<year>\d{4})-(?<month>\d\d)$`, []string{"2026-11"}, []string{"26-11"}},
		{`^(?:a|b)+?c{2,}d{1,3}e{0}f*?$`, []string{"abccd", "accddf"}, []string{"acd"}},
		{`^a{,3}$`, []string{"a{,3}"}, []string{"aa"}},
		{`^x{$`, []string{"x{"}, []string{"x"}},
		{`^{a}]$`, []string{"{a}]"}, nil},
		{`^(|a)b$`, []string{"b", "ab"}, nil},
		{``, []string{"", "x"}, nil},
		{`^\p{Lu}\P{Lu}$`, []string{"Éa"}, []string{"éa"}},
		{`^\p{Letter}cole$`, []string{"École"}, nil},
		{`^[\p{Script=Greek}\d]+$`, []string{"αβ1"}, []string{"ab"}},
		{`^\p{Any}\p{ASCII}$`, []string{"éa"}, []string{"aé"}},
		{`^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`, []string{"a-b.example.com"}, []string{"-a.com"}},
		{`a|^b$|c`, []string{"xa", "b", "cx"}, []string{"xb"}},
		{`é.日`, []string{"éx日"}, nil},
		// what follows an escape is not part of it
		{`^\0a$`, []string{"\x00a"}, []string{"\x00", "\x00aa"}},
		{`^\x41B1$`, []string{"AB1"}, []string{"A1"}},
		{`^\u00411$`, []string{"A1"}, []string{"A"}},
		{`^\u{0000000041}1$`, []string{"A1"}, []string{"A"}},
		{`^\u{10FFFF}$`, []string{"\U0010FFFF"}, []string{"\U0010FFFE"}},
		{`^\cAb\cJ\cj$`, []string{"\x01b\n\n"}, nil},
		{`^\ud83d\ude00x$`, []string{"😀x"}, []string{"😀"}},
		{`^\udbff\udfff\ud7ff\ue000$`, []string{"\U0010FFFF\uD7FF\uE000"}, nil},
		{`^\t\n\v\f\r$`, []string{"\t\n\v\f\r"}, []string{"tnvfr"}},
		{`^[\t\n\v\f\rx]{2}$`, []string{"\vx", "\r\f"}, []string{"vx"}},
		// classes at the borders of their ranges
		{`^[b-y]$`, []string{"b", "y"}, []string{"a", "z"}},
		{`^[^b-y]$`, []string{"a", "z", "é"}, []string{"b", "y"}},
		{`^[b-b]$`, []string{"b"}, []string{"a", "c", "-"}},
		{`^[\x41-\u0043]$`, []string{"A", "C"}, []string{"@", "D"}},
		{`^[a-c-e]$`, []string{"a", "c", "-", "e"}, []string{"d"}},
		{`^[-a]$`, []string{"-", "a"}, []string{"b"}},
		{`^[a-]$`, []string{"-", "a"}, []string{"b"}},
		{`^[--a]$`, []string{"-", "a", "A"}, []string{",", "b"}},
		{`^[a\-c]$`, []string{"a", "-", "c"}, []string{"b"}},
		{`^[\d-x]$`, []string{"5", "-", "x"}, []string{"w", ":"}},
		{`^[a-b^]$`, []string{"^", "a"}, []string{"c"}},
		{`^[^^]$`, []string{"a"}, []string{"^"}},
		{`^[\x00-\u{10FFFF}]$`, []string{"\x00", "a", "\U0010FFFF"}, []string{""}},
		{`[^\x00-\u{10FFFF}]`, nil, []string{"", "a"}},
		{`^[\u{10FFFE}-\u{10FFFF}]$`, []string{"\U0010FFFE", "\U0010FFFF"}, []string{"\U0010FFFD"}},
		{`^[^\0-\x7f]$`, []string{"\u0080", "\U0010FFFF"}, []string{"\x7f", "\x00"}},
		{`^[ac-eb]$`, []string{"a", "b", "c", "e"}, []string{"f"}},
		{`^[a-ec-d]$`, []string{"a", "e"}, []string{"f"}},
		{`^[\w\W]\p{gc=Lu}\p{sc=Greek}\p{General_Category=Nd}$`, []string{"éÉα1"}, []string{"éÉa1"}},
		{`^\P{Any}$`, nil, []string{"", "a"}},
		// quantifiers
		{`^a{007}$`, []string{"aaaaaaa"}, []string{"aaaaaa", "aaaaaaaa"}},
		{`^a{0}b$`, []string{"b"}, []string{"ab"}},
		{`^a{00,01}$`, []string{"", "a"}, []string{"aa"}},
		{`^a{2,10}$`, []string{"aa", "aaaaaaaaaa"}, []string{"a", "aaaaaaaaaaa"}},
		{`^a{09,10}$`, []string{"aaaaaaaaa"}, []string{"a"}},
		{`^a{2,2}$`, []string{"aa"}, []string{"a", "aaa"}},
		{`^a{1,}?b??c+?$`, []string{"aac", "abc"}, []string{"b"}},
		{`^a{}b{x}c{1,x}d{,}$`, []string{"a{}b{x}c{1,x}d{,}"}, nil},
		{`^(?:ab){2}(?<$x>c)(?<_y1>d)$`, []string{"ababcd"}, []string{"abcd"}},
	} {
		p, err := Compile(c.pattern, budget())
		if err != nil {
			t.Errorf("%q: refused: %v", c.pattern, *err)
			continue
		}
		for _, s := range c.match {
			if !p.Match([]byte(s)) {
				t.Errorf("%q (RE2 %q) does not match %q", c.pattern, p.RE2, s)
			}
		}
		for _, s := range c.no {
			if p.Match([]byte(s)) {
				t.Errorf("%q (RE2 %q) matches %q", c.pattern, p.RE2, s)
			}
		}
	}
}

func TestPatternRefused(t *testing.T) {
	for _, c := range []struct{ pattern, message, hint string }{
		{`^(?!x)y$`, "lookahead at byte 1", "not"},
		{`a(?=b)`, "lookahead at byte 1", "allOf"},
		{`(?<=a)b`, "lookbehind at byte 0", "allOf"},
		{`(?<!a)b`, "lookbehind at byte 0", "allOf"},
		{`(a)\1`, "a backreference at byte 3", "alternatives"},
		{`(?<n>a)\k<n>`, "a backreference at byte 7", "alternatives"},
		{`(?i)a`, "unknown kind of group", "[Aa]"},
		{`(?i:a)`, "unknown kind of group", "[Aa]"},
		{`(?P<n>a)`, "unknown kind of group", ""},
		{`(?<1>a)`, "malformed name", ""},
		{`(?<n>a)(?<n>b)`, "same name", ""},
		{`(a`, "not closed", ""},
		{`a)`, "not open", `\)`},
		{`[a`, "class is not closed", `\[`},
		{`[b-a]`, "out of order", ""},
		{`*a`, "nothing to repeat", `\`},
		{`a**`, "nothing to repeat", ""},
		{`^*`, "nothing to repeat", ""},
		{`(|*)`, "nothing to repeat", ""},
		{`a{2}{3}`, "nothing to repeat", ""},
		{`a{3,2}`, "out of order", ""},
		{`a{10,9}`, "out of order", ""},
		{`a{010,9}`, "out of order", ""},
		{`[a-\x4]`, `\x must be followed`, ""},
		{`[a-`, "class is not closed", ""},
		{`[^`, "class is not closed", ""},
		{`[\d-\Z]`, "unknown escape", ""},
		{`[\u{10FFFF}-\u{10FFFE}]`, "out of order", ""},
		{`\x`, `\x must be followed`, ""},
		{`\xg1`, `\x must be followed`, ""},
		{`\x1g`, `\x must be followed`, ""},
		{`\u`, `\u must be followed`, ""},
		{`\u123`, `\u must be followed`, ""},
		{`\u123g`, `\u must be followed`, ""},
		{`\u{41`, `\u{ must be followed`, ""},
		{`\u{g}`, "no code point", ""},
		{`\u{d800}`, "lone surrogate", ""},
		{`\u{dfff}`, "lone surrogate", ""},
		{`\ud83d\u0041`, "lone surrogate", ""},
		{`\ude00\ud83d`, "lone surrogate", ""},
		{`\00`, "octal", ""},
		{`\09`, "octal", ""},
		{`\c`, `must be followed by a letter`, ""},
		{`\c[`, `must be followed by a letter`, ""},
		{`\_`, "unknown escape", ""},
		{`\p{Lu`, "must be followed by a property name", ""},
		{`\p`, "must be followed by a property name", ""},
		{`\p{}`, "the Unicode property", ""},
		{`\p{x=Lu}`, "the Unicode property", ""},
		{`\p{^Lu}`, "the Unicode property", ""},
		{`\p{sc=^Greek}`, "the Unicode property", ""},
		{`\p{Script=Greek=Greek}`, "the Unicode property", ""},
		{`(?<>a)`, "malformed name", ""},
		{`(?<n`, "malformed name", ""},
		{`(?<n-m>a)`, "malformed name", ""},
		{`(?`, "unknown kind of group", ""},
		{`\k`, "a backreference", ""},
		{`\9`, "a backreference", ""},
		{`a+*`, "nothing to repeat", ""},
		{`(?:)*{2}`, "nothing to repeat", ""},
		{`$?`, "nothing to repeat", ""},
		{`\b+`, "nothing to repeat", ""},
		{`a|*`, "nothing to repeat", ""},
		{`a{2000}`, "repeats more than RE2 allows", "maxLength"},
		{`(a{500}){500}`, "repeats more than RE2 allows", "maxLength"},
		{`a\`, "backslash", `\\`},
		{`\c`, `\c must be followed by a letter`, ""},
		{`\c1`, `\c must be followed by a letter`, ""},
		{`\x4`, `\x must be followed`, ""},
		{`\u12`, `\u must be followed`, ""},
		{`\u{110000}`, "no code point", ""},
		{`\u{}`, `\u{ must be followed`, ""},
		{`\ud83d`, "lone surrogate", "pair"},
		{`\udc00`, "lone surrogate", ""},
		{`\01`, "octal", `\xHH`},
		{`\Z`, "unknown escape", ""},
		{`\A`, "unknown escape", ""},
		{`\a`, "unknown escape", ""},
		{`[\Q]`, "unknown escape", ""},
		{`\p{Emoji_Keycap}`, "the Unicode property", "general categories"},
		{`\p{Script_Extensions=Greek}`, "the Unicode property", "general categories"},
		{`\pL`, "must be followed by a property name", ""},
		{`^(?:a?){400}a{400}$`, `its part "(?:a?){400}" at byte 1 stands for 400 characters`, "maxLength"},
		{`[ab]*a(?:b{9}[ab]{90}){10}(?:a?){300}c`, `its part "(?:b{9}[ab]{90}){10}" at byte 6 stands for 990 characters`, "anchor"},
		{`[ab]*a` + strings.Repeat(`[ab]{1000}`, 5), `its part "[ab]{1000}" at byte 6 stands for 1000 characters`, "maxLength"},
		{strings.Repeat(`(?:`, 1500) + "a" + strings.Repeat("b)*", 1500), "too large", "shorten"},
	} {
		_, err := Compile(c.pattern, budget())
		if err == nil {
			t.Errorf("%.50q: compiled", c.pattern)
			continue
		}
		if !strings.Contains(err.Message, c.message) || !strings.Contains(err.Hint, c.hint) {
			t.Errorf("%.50q: refused with %q (%q), want %q (%q)", c.pattern, err.Message, err.Hint, c.message, c.hint)
		}
	}
}

// FuzzPattern checks that a translation always compiles and, for patterns in
// the common core of both syntaxes, means what Go's own engine says.
func FuzzPattern(f *testing.F) {
	for _, s := range [][2]string{
		{`^[a-z]+$`, "abc"}, {`a|b`, "b"}, {`(x{2,3}y)*`, "xxy"}, {`[^a-c]\.`, "d."}, {`\u0041\d`, "A1"}, {`a{,3}`, "a"}, {`\p{L}`, "é"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if !utf8.ValidString(source) || !utf8.ValidString(text) || len(source) > 200 {
			t.Skip()
		}
		p, refused := Compile(source, budget())
		if refused != nil {
			if refused.Message == "" || strings.HasPrefix(refused.Message, "pattern is malformed: ") {
				t.Fatalf("%q: the translation is not RE2, or the reason is missing: %+v", source, *refused)
			}
			return
		}
		if p.Match([]byte(text)) != regexp.MustCompile(p.RE2).MatchString(text) {
			t.Fatalf("%q as %q on %q: the automaton says %v", source, p.RE2, text, p.Match([]byte(text)))
		}
		if strings.ContainsAny(source, `.\[?{`) {
			return
		}
		want, err := regexp.Compile(source)
		if err != nil {
			t.Fatalf("%q: translated to %q, but Go refuses it: %v", source, p.RE2, err)
		}
		if got := p.Match([]byte(text)); got != want.MatchString(text) {
			t.Fatalf("%q as %q on %q: %v", source, p.RE2, text, got)
		}
	})
}

// TestAutomataAreUsed makes sure that common patterns get an automaton, and
// that a schema full of large ones stays cheap to compile.
func TestAutomataAreUsed(t *testing.T) {
	for _, source := range []string{
		`^[a-z0-9][a-z0-9-]*$`, `^\d{4}-\d{2}-\d{2}$`, `^https?://`, `foo|bar`, `^.{1,100}$`, `\bword\b`, `^\p{Lu}`,
		`^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}$`, ``,
	} {
		p, err := Compile(source, budget())
		if err != nil {
			t.Fatalf("%q: %v", source, *err)
		}
		if p.dfa == nil {
			t.Errorf("%q has no automaton", source)
		}
	}
	left := budget()
	for i := range 100 {
		p, err := Compile(`[ab]*a[ab]{30}$`, left)
		if err != nil {
			t.Fatal(*err)
		}
		if p.dfa != nil || left.steps < 0 {
			t.Fatalf("pattern %d: automaton %v, budget %d", i, p.dfa != nil, left.steps)
		}
		if !p.Match([]byte(strings.Repeat("a", 31))) || p.Match([]byte(strings.Repeat("a", 30))) {
			t.Fatal("wrong without an automaton")
		}
	}
	if left.steps > maxPatternSteps {
		t.Errorf("%d steps remain: what large patterns cost is not counted", left.steps)
	}
}
