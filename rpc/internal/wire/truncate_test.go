package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Truncated text is a valid prefix, as long as the bound allows, and marked as cut.
func TestTruncate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		most := rapid.IntRange(0, 40).Draw(t, "most")
		got := Truncate(s, most)
		if len(s) <= most {
			if got != s {
				t.Fatalf("%q was cut to %q", s, got)
			}
			return
		}
		cut, marked := strings.CutSuffix(got, "…")
		if !marked || !strings.HasPrefix(s, cut) || len(cut) > most || !utf8.ValidString(got) {
			t.Fatalf("Truncate(%q, %d) = %q", s, most, got)
		}
		if _, next := utf8.DecodeRuneInString(s[len(cut):]); len(cut)+next <= most {
			t.Fatalf("Truncate(%q, %d) = %q: one more code point fits", s, most, got)
		}
	})
}
