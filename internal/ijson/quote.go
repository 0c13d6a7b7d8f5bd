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
func AppendQuoted[T ~string | ~[]byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	for done := 0; ; {
		n := done + plainRun(text[done:])
		dst = append(dst, text[done:n]...)
		if n == len(text) {
			return append(dst, '"')
		}
		dst, done = appendSpecial(dst, text, n)
	}
}

// plainRun returns the number of bytes before the first one in text that
// [special] marks. The word is put together by shifts, which the compiler turns
// into one load, because a string has no other way to be read by words.
func plainRun[T ~string | ~[]byte](s T) int {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if m := special(w); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// appendSpecial appends the character at text[i], which is not plain, or the
// whole run of characters beyond ASCII that starts there. It returns the
// offset after what it has appended.
func appendSpecial[T ~string | ~[]byte](dst []byte, text T, i int) ([]byte, int) {
	switch c := text[i]; {
	case c >= utf8.RuneSelf:
		return appendRunes(dst, text, i)
	case c == '"' || c == '\\':
		dst = append(dst, '\\', c)
	case c == '\b':
		dst = append(dst, '\\', 'b')
	case c == '\f':
		dst = append(dst, '\\', 'f')
	case c == '\n':
		dst = append(dst, '\\', 'n')
	case c == '\r':
		dst = append(dst, '\\', 'r')
	case c == '\t':
		dst = append(dst, '\\', 't')
	default:
		dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
	return dst, i + 1
}

// appendRunes appends the run of characters beyond ASCII that starts at
// text[i], and returns the offset after it.
func appendRunes[T ~string | ~[]byte](dst []byte, text T, i int) ([]byte, int) {
	for i < len(text) && text[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
		dst = utf8.AppendRune(dst, r) // U+FFFD for a byte that is not UTF-8
		i += n
	}
	return dst, i
}
