package output

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable reports whether a terminal shows r as a character of its own place.
// Control characters move the cursor or hide what stands before it. Bidirectional
// controls (Unicode, annex 9) and line separators show text in another order than it
// has, which is how a command or a name is made to look like another one.
func printable(r rune) bool {
	switch {
	case r < ' ' || r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return false
	case unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
		return false
	// Tags: invisible copies of ASCII.
	case r >= 0xe0000 && r <= 0xe007f:
		return false
	}
	return true
}

// Printable escapes what could deceive the reader of a terminal, line breaks
// included: a text from elsewhere stays within its line.
func Printable(s string) string { return escape(s, printable) }

// PrintableText is Printable for text of several lines.
func PrintableText(s string) string {
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' || printable(r) })
}

func escape(s string, clean func(rune) bool) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !clean(r) }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i]) // a byte that is no UTF-8
		case clean(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// printableJSON escapes what is not printable in a JSON text, where it can stand in
// strings only. Line breaks and tabs are those of the layout.
func printableJSON(text []byte) []byte {
	clean := func(r rune) bool { return r == '\n' || r == '\t' || printable(r) }
	if !bytes.ContainsFunc(text, func(r rune) bool { return !clean(r) }) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case clean(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default: // as a surrogate pair, which is all that JSON has
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.Bytes()
}
