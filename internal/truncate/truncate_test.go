package truncate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/truncate"
)

func TestString(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"a", 0, "…"},
		{"a", -1, "…"},
		{"aé", 2, "a…"},      // é has two bytes
		{"aé", 3, "aé"},      //
		{"日本語", 8, "日本…"},    // three each
		{"日本語", 2, "…"},      //
		{"x😀y", 4, "x…"},     // four bytes
		{"x😀y", 5, "x😀…"},    //
		{"e\u0301", 2, "e…"}, // the accent is a code point of its own
		{"\x80\x80\x80\x80\x80", 4, "\x80\x80\x80\x80…"},
		{"\x80\x80", 1, "\x80…"},
	} {
		if got := truncate.String(c.s, c.limit); got != c.want {
			t.Errorf("String(%q, %d) = %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

// Whatever the text and the limit: the result is a beginning of the text, no
// longer than asked, cut between code points, and as long as it can be.
func TestStringProperties(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aé日😀\u0301")), 0, 40, -1)
	rapid.Check(t, func(t *rapid.T) {
		s, limit := text.Draw(t, "s"), rapid.IntRange(-2, 60).Draw(t, "limit")
		got := truncate.String(s, limit)
		if len(s) <= limit {
			if got != s {
				t.Fatalf("%q became %q although it fits into %d bytes", s, got, limit)
			}
			return
		}
		kept, marked := strings.CutSuffix(got, truncate.Mark)
		switch {
		case s == "" && got == "":
		case !marked:
			t.Fatalf("%q is not marked", got)
		case !utf8.ValidString(got):
			t.Fatalf("%q is not UTF-8", got)
		case !strings.HasPrefix(s, kept) || len(kept) > max(limit, 0):
			t.Fatalf("%q is no beginning of %q with at most %d bytes", kept, s, limit)
		}
		if _, n := utf8.DecodeRuneInString(s[len(kept):]); len(kept)+n <= limit {
			t.Fatalf("%q has room for one more character in %d bytes", kept, limit)
		}
	})
}

// Bytes that are not UTF-8 never make the result longer, and never fail.
func FuzzString(f *testing.F) {
	f.Add("日本", 4)
	f.Add("\xff\xfe\x80\x80\x80\x80", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := truncate.String(s, limit)
		if len(s) > max(limit, 0) && (len(got) > max(limit, 0)+len(truncate.Mark) || utf8.ValidString(s) && !utf8.ValidString(got)) {
			t.Fatalf("String(%q, %d) = %q", s, limit, got)
		}
	})
}
