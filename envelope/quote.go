package envelope

import "math/bits"

const hexDigits = "0123456789abcdef"

// appendQuoted writes s, valid UTF-8, as ECMA-262's JSON.stringify does: the
// signing form of version 1 is defined by it.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		n := plain(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		dst = appendEscaped(dst, s[n])
		s = s[n+1:]
	}
}

func appendEscaped(dst []byte, c byte) []byte {
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

// plain is how many bytes of s come before the first that needs an escape. It
// looks at eight at a time: a borrow may mark bytes above one that is marked
// rightly, and only the lowest mark counts.
func plain(s string) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := w^ones*'"', w^ones*'\\'
		marks := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
		if marks != 0 {
			return i + bits.TrailingZeros64(marks)>>3
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}
