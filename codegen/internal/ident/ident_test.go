package ident_test

import (
	"go/token"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/codegen/internal/ident"
)

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		name         string
		words, camel string // joined by spaces
		pascal       string
	}{
		{"review-pr", "review pr", "review pr", "ReviewPr"},
		{"prUrl", "prUrl", "pr Url", "PrUrl"},
		{"HTTPServer", "HTTPServer", "HTTPServer", "HTTPServer"},
		{"v2Beta", "v2Beta", "v2 Beta", "V2Beta"},
		{"a.b_c d", "a b c d", "a b c d", "ABCD"},
		{"3d", "3d", "3d", "X3d"},
		{"--", "", "", "X"},
		{"", "", "", "X"},
		{"日本", "", "", "X"},
		{"añb", "a b", "a b", "AB"},
		{"x\x7fy", "x y", "x y", "XY"},
	} {
		if got := strings.Join(ident.Words(tt.name), " "); got != tt.words {
			t.Errorf("Words(%q) = %q, want %q", tt.name, got, tt.words)
		}
		if got := strings.Join(ident.CamelWords(tt.name), " "); got != tt.camel {
			t.Errorf("CamelWords(%q) = %q, want %q", tt.name, got, tt.camel)
		}
		if got := ident.Pascal(tt.name); got != tt.pascal {
			t.Errorf("Pascal(%q) = %q, want %q", tt.name, got, tt.pascal)
		}
	}
}

func TestStartWithLetter(t *testing.T) {
	for name, want := range map[string]string{"": "p", "0a": "p0a", "9": "p9", "a0": "a0", ":": ":"} {
		if got := ident.StartWithLetter(name, "p"); got != want {
			t.Errorf("StartWithLetter(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestScope(t *testing.T) {
	s := ident.NewScope("Client", "item")
	s.Reserve("Late")
	for _, step := range []struct{ name, want string }{
		{"a", "a"}, {"a", "a2"}, {"A", "A3"}, {"client", "client2"}, {"CLIENT", "CLIENT3"}, {"late", "late2"},
		{"x1", "x1"}, {"x1", "x1_2"}, {"X1", "X1_3"}, {"a2", "a2_2"}, {"Item", "Item2"},
	} {
		if got := s.Unique(step.name); got != step.want {
			t.Errorf("Unique(%q) = %q, want %q", step.name, got, step.want)
		}
	}
}

// Whatever names come, in whatever order: no two results are alike on a system
// that folds case, and every one starts with the name that was asked for.
func TestScopeNeverRepeats(t *testing.T) {
	name := rapid.StringMatching(`[abAB][12_]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		s := ident.NewScope("a2")
		seen := []string{"a2"}
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			n := name.Draw(t, "name")
			got := s.Unique(n)
			if !strings.HasPrefix(got, n) || slices.Contains(seen, strings.ToLower(got)) {
				t.Fatalf("Unique(%q) = %q after %q", n, got, seen)
			}
			seen = append(seen, strings.ToLower(got))
		}
	})
}

// Any text gives an identifier that Go, and with it the other languages, take.
func FuzzPascal(f *testing.F) {
	for _, seed := range []string{"review-pr", "", "3d", "日本", "a\x00b", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := ident.Pascal(name)
		if !token.IsIdentifier(got) || !token.IsExported(got) && got[0] >= 'a' {
			t.Fatalf("Pascal(%q) = %q", name, got)
		}
	})
}
