package ijson

import (
	"math/bits"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendQuoted appends text to dst as a JSON string, in the one spelling that
// RFC 8785 section 3.2.2.2 and ECMA-262's JSON.stringify define: a quote, a
// backslash and control characters are escaped, as shortly as JSON can, and
// everything else stays as it is. Signatures and hashes are computed over this
// spelling; it must never change.
//
// Bytes that are not valid UTF-8 become U+FFFD, one for each, so that the
// result is always JSON.
func AppendQuoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for {
		n := plainRun(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"')
		}
		if text = text[n:]; text[0] < utf8.RuneSelf {
			dst = appendEscape(dst, text[0])
			text = text[1:]
			continue
		}
		n, valid := runesRun(text)
		dst = append(dst, text[:n]...)
		if !valid {
			dst = append(dst, "\ufffd"...)
			n++
		}
		text = text[n:]
	}
}

// AppendPlain is [AppendQuoted] for text that needs no escape and is ASCII, as nearly
// all text is. It returns false for any other, and then appends nothing.
func AppendPlain(dst []byte, text string) ([]byte, bool) {
	if plainRun(text) < len(text) {
		return dst, false
	}
	dst = append(append(dst, '"'), text...)
	return append(dst, '"'), true
}

// plainRun returns the number of bytes before the first one in s that
// [special] marks.
func plainRun(s string) int {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		if m := special(word(s[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	// The last eight bytes, of which some have been seen, take less time than the rest
	// one by one.
	if i < len(s) && len(s) >= 8 && special(word(s[len(s)-8:])) == 0 {
		return len(s)
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// word returns the first eight bytes of s. The compiler turns the shifts into one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// runesRun returns the length of the run of characters beyond ASCII that s
// starts with, and whether it ends for another reason than invalid UTF-8.
func runesRun(s string) (n int, valid bool) {
	for n < len(s) && s[n] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s[n:])
		if r == utf8.RuneError && size == 1 { // size is 3 for U+FFFD itself
			return n, false
		}
		n += size
	}
	return n, true
}

// appendEscape appends the shortest escape of c: two characters for those that
// RFC 8259 section 7 names, \u00xx with small letters for other control
// characters.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
