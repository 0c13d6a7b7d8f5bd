package ijson

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestRunesAsTheDecoderSeesThem asks for every pair of bytes that begins a character,
// before each byte that may follow, what unicode/utf8 says of it: in the middle of a
// text, and where it ends.
func TestRunesAsTheDecoderSeesThem(t *testing.T) {
	third := []byte{0, 'a', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE4, 0xFF}
	for a := 0x80; a < 0x100; a++ {
		for b := range 0x100 {
			for _, c := range third {
				for _, tail := range []string{"", "\x80", "\x80abcdefgh", "abcdefghi", "漢字漢字漢字"} {
					checkRunes(t, append([]byte{byte(a), byte(b), c}, tail...))
				}
			}
		}
	}
}

// TestRunsOfRunes mixes characters of all lengths with bytes that belong to none.
func TestRunsOfRunes(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "é", "߿", "ࠀ", "漢", "한", "\ud7ff", "\ue000", "\ufffd", "\uffff", "😀", "\U0010ffff",
		"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe6\xbc",
	})
	rapid.Check(t, func(t *rapid.T) {
		checkRunes(t, bytes.Join(rapid.SliceOf(rapid.Map(piece, func(s string) []byte { return []byte(s) })).Draw(t, "pieces"), nil))
	})
}

// checkRunes holds scanRunes and countRunes against the decoder.
func checkRunes(t interface{ Fatalf(string, ...any) }, text []byte) {
	want, fails := 0, false
	for want < len(text) && text[want] >= utf8.RuneSelf && !fails {
		r, n := utf8.DecodeRune(text[want:])
		if fails = r == utf8.RuneError && n == 1; !fails {
			want += n
		}
	}
	got, err := scanRunes(text, 0)
	if (err != nil) != fails || err == nil && got != want {
		t.Fatalf("%q: scanned to %d (%v), want %d (fault: %t)", text, got, err, want, fails)
	}
	if utf8.Valid(text) && countRunes(text) != utf8.RuneCount(text) {
		t.Fatalf("%q has %d characters, want %d", text, countRunes(text), utf8.RuneCount(text))
	}
}
