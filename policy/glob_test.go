package policy_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/alloctest"
	"github.com/agentd/agentd/policy"
)

func glob(t testing.TB, pattern string) policy.Glob {
	t.Helper()
	g, err := policy.ParseGlob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, target string
		want            bool
	}{
		{"RequestAgent:**", "RequestAgent:agent://x/review", true},
		{"RequestAgent:*", "RequestAgent:agent://x/review", false},
		{"RequestAgent:*", "RequestAgent:", true},
		{"RequestAgent:agent://x/*", "RequestAgent:agent://x/review", true},
		{"RequestAgent:agent://x/*", "RequestAgent:agent://x/", true},
		{"RequestAgent:agent://x/*", "RequestAgent:agent://xy/review", false},
		{"RequestAgent:agent://x/*", "RequestAgent:agent://x/a/b", false},
		{"RequestAgent:agent://*/review", "RequestAgent:agent://x/review", true},
		{"RequestAgent:agent://*/review", "RequestAgent:agent://x/y/review", false},
		{"RequestAgent:agent://**/review", "RequestAgent:agent://x/y/review", true},
		{"agent://pr-?", "agent://pr-1", true},
		{"agent://pr-?", "agent://pr-é", true},
		{"agent://pr-?", "agent://pr-", false},
		{"agent://pr-?", "agent://pr-12", false},
		{"agent:?/x", "agent:/x", false},
		// Anchored at both ends.
		{"agent://x", "agent://xy", false},
		{"gent://x", "agent://x", false},
		{"x**", "ax", false},
		// Everything else is literal.
		{"a[bc]", "ab", false},
		{"a[bc]", "a[bc]", true},
		{"{a,b}", "a", false},
		{"{a,b}", "{a,b}", true},
		{`a\*`, "a*", false},
		{`a\*`, `a\b`, true},
		{"a.c", "abc", false},
		{"A", "a", false},
		// A newline is a character like any other.
		{"RequestAgent:agent://x/*", "RequestAgent:agent://x/re\nview", true},
		{"**", "\n", true},
		{"?", "\n", true},
		{"a", "a\n", false},
		// Several stars.
		{"*a*b*c*", "xaxbxcx", true},
		{"*a*b*c*", "xaxcxbx", false},
		{"**a*b", "/a/b/axxb", true},
		{"**a*b", "/a/b/a/b", false},
		{"***", "a/b", true},
		{"****", "", true},
		{"*/*", "/", true},
		{"**/*/c", "a/b/c", true},
		{"**/*/c", "b/c", false},
		// A ? is one character, never a slash, wherever it stands.
		{"RequestAgent:agent://x?review", "RequestAgent:agent://x/review", false},
		{"**?", "a/", false},
		{"*?*", "/", false},
		{"a?", "a\xff", true},
		{"a?", "a\xff\xff", false},
		{"é*", "é", true},
		{"é*", "\xc3", false},
		{"*é", "\xc3é", true},
		{"*é", "è", false}, // the same first byte
		{"*é*", "xèy", false},
		{"", "", true},
	} {
		if test.pattern == "" {
			if !(policy.Glob{}).Match(test.target) || (policy.Glob{}).Match("x") {
				t.Error("the zero glob covers the empty target alone")
			}
			continue
		}
		if got := glob(t, test.pattern).Match(test.target); got != test.want {
			t.Errorf("%q on %q: %v", test.pattern, test.target, got)
		}
	}
}

func TestParseGlobRefuses(t *testing.T) {
	for _, pattern := range []string{"", strings.Repeat("a", policy.MaxPatternBytes+1), "agent://\xff"} {
		if _, err := policy.ParseGlob(pattern); err == nil {
			t.Errorf("the pattern %.20q of %d bytes is accepted", pattern, len(pattern))
		}
	}
	if g := glob(t, "a*"); g.String() != "a*" {
		t.Errorf("String is %q", g)
	}
	longest := strings.Repeat("a", policy.MaxPatternBytes)
	if g := glob(t, longest); !g.Match(longest) || g.Match(longest+"a") {
		t.Error("a pattern of the greatest length does not cover itself alone")
	}
}

// naive is what the documentation says, tried in every way.
func naive(pattern, target string) bool {
	switch {
	case pattern == "":
		return target == ""
	case strings.HasPrefix(pattern, "**"):
		for i := range target {
			if naive(pattern[2:], target[i:]) {
				return true
			}
		}
		return naive(pattern[2:], "")
	case pattern[0] == '*':
		for i := range target { // by characters
			if naive(pattern[1:], target[i:]) {
				return true
			}
			if target[i] == '/' {
				return false
			}
		}
		return naive(pattern[1:], "")
	case target == "":
		return false
	case pattern[0] == '?':
		_, n := utf8.DecodeRuneInString(target)
		return target[0] != '/' && naive(pattern[1:], target[n:])
	}
	return pattern[0] == target[0] && naive(pattern[1:], target[1:])
}

func TestGlobAgreesWithTheNaiveReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.SampledFrom([]rune("ab/*?é")), 1, 9, -1).Draw(t, "pattern")
		target := rapid.StringOfN(rapid.SampledFrom([]rune("ab/é\n")), 0, 9, -1).Draw(t, "target")
		g, err := policy.ParseGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := g.Match(target), naive(pattern, target); got != want {
			t.Fatalf("%q on %q: %v, want %v", pattern, target, got, want)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("RequestAgent:agent://*/re**", "RequestAgent:agent://x/review")
	f.Add("**a*b**/?", "aab/ab/b")
	f.Add("*?/**", "\xff/\n")
	f.Add("?*??*0", "0\U000d65960")
	f.Fuzz(func(t *testing.T, pattern, target string) {
		g, err := policy.ParseGlob(pattern)
		if err != nil {
			return
		}
		got := g.Match(target)
		if len(pattern) > 12 || len(target) > 16 {
			return // the naive reading takes exponential time
		}
		if want := naive(pattern, target); got != want {
			t.Fatalf("%q on %q: %v, want %v", pattern, target, got, want)
		}
	})
}

// The caller of an agent chooses the target: no pattern may make it a way to keep
// the agent busy. A matcher that starts over at each slash takes seconds here.
func TestGlobTakesLinearTime(t *testing.T) {
	for _, test := range []struct{ pattern, target string }{
		{"**a*b", strings.Repeat("a", 1<<18)},
		{"**a*/*b", strings.Repeat(strings.Repeat("a", 1<<9)+"/", 1<<9)},
		{strings.Repeat("**a*", policy.MaxPatternBytes/4-1) + "b", strings.Repeat("a", 4096)},
		{strings.Repeat("?", policy.MaxPatternBytes-2) + "**", strings.Repeat("é", 4096) + "/"},
		{strings.Repeat("?", 63) + "*x", strings.Repeat("é", 64)},
	} {
		g := glob(t, test.pattern)
		began := time.Now()
		want := strings.HasSuffix(test.pattern, "?**")
		if got := alloctest.Least(1, func() {
			if g.Match(test.target) != want {
				t.Errorf("%.20q: want %v", test.pattern, want)
			}
		}); got > 0 {
			t.Errorf("%.20q: %v allocations", test.pattern, got)
		}
		// Milliseconds, where quadratic time is minutes.
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%.20q takes %s", test.pattern, took)
		}
	}
}

func BenchmarkGlob(b *testing.B) {
	for _, bench := range []struct{ name, pattern, target string }{
		{"Exact", "RequestAgent:agent://librarian/search", "RequestAgent:agent://librarian/search"},
		{"All", "RequestAgent:**", "RequestAgent:agent://librarian/search"},
		{"OneAgent", "RequestAgent:agent://librarian/*", "RequestAgent:agent://librarian/search"},
		{"OneName", "RequestAgent:agent://*/search", "RequestAgent:agent://librarian/search"},
		{"Inside", "RequestAgent:**/merge-*", "RequestAgent:agent://librarian/search"},
		{"Other", "RequestAgent:agent://pr-reviewer/*", "RequestAgent:agent://librarian/search"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			g := glob(b, bench.pattern)
			b.ReportAllocs()
			for b.Loop() {
				g.Match(bench.target)
			}
		})
	}
}
