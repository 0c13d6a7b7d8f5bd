package ijson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// spaces has one bit for each byte that RFC 8259 section 2 calls white space.
const spaces = 1<<' ' | 1<<'\t' | 1<<'\n' | 1<<'\r'

// SkipSpace returns the offset of the first byte at or after i that is not
// white space, or len(data).
func SkipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && spaces>>data[i]&1 != 0 {
		i++
	}
	return i
}

// A byte repeated in a word: its lowest bit, and its highest.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks the bytes of w that end the plain run of a string: a quote, a
// backslash, a control character or a byte beyond ASCII. Only the lowest mark
// is exact, because a borrow may spill into the bytes above it.
func special(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote - ones) | (slash - ones) | (w - ones*0x20) | w) & highs
}

// ScanString scans the string that opens at data[i], which must be a quote,
// and returns the offset after its closing quote. The raw content is
// data[i+1:end-1]; escaped reports whether it holds a backslash.
func ScanString(data []byte, i int) (end int, escaped bool, err error) {
	for i++; ; {
		for len(data)-i >= 8 {
			m := special(binary.LittleEndian.Uint64(data[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(data) {
			return 0, false, fault(data, i, msgEnd)
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\':
			escaped = true
			if i, err = scanEscape(data, i); err != nil {
				return 0, false, err
			}
		case c < 0x20:
			return 0, false, fault(data, i, msgControl)
		case c < utf8.RuneSelf:
			i++
		default:
			if i, err = scanRunes(data, i); err != nil {
				return 0, false, err
			}
		}
	}
}

// scanRunes passes over a run of characters beyond ASCII.
func scanRunes(data []byte, i int) (int, error) {
	for i < len(data) && data[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return 0, fault(data, i, msgUTF8)
		}
		i += n
	}
	return i, nil
}

// scanEscape passes over the escape sequence at data[i], or over two of them
// where they form a surrogate pair.
func scanEscape(data []byte, i int) (int, error) {
	if i+1 >= len(data) {
		return 0, fault(data, i+1, msgEnd)
	}
	switch data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
	default:
		return 0, fault(data, i, msgEscape)
	}
	r, ok := hex4(data, i+2)
	switch {
	case !ok:
		return 0, hexFault(data, i)
	case !utf16.IsSurrogate(r):
		return i + 6, nil
	}
	return scanPair(data, i, r)
}

// scanPair passes over the surrogate pair at i, whose first half is high.
func scanPair(data []byte, i int, high rune) (int, error) {
	if i+7 >= len(data) || data[i+6] != '\\' || data[i+7] != 'u' {
		return 0, fault(data, i, msgSurrogate)
	}
	low, ok := hex4(data, i+8)
	if !ok {
		return 0, hexFault(data, i+6)
	}
	if utf16.DecodeRune(high, low) == utf8.RuneError {
		return 0, fault(data, i, msgSurrogate)
	}
	return i + 12, nil
}

// hexFault reports the unfinished \u escape at i: cut off by the end of the
// input, or followed by something that is not four hexadecimal digits.
func hexFault(data []byte, i int) error {
	for j := i + 2; j < i+6; j++ {
		if j >= len(data) {
			return fault(data, j, msgEnd)
		}
		if hexValue(data[j]) > 15 {
			break
		}
	}
	return fault(data, i, msgEscape)
}

// hex4 reads the four hexadecimal digits at i.
func hex4(data []byte, i int) (rune, bool) {
	if len(data)-i < 4 {
		return 0, false
	}
	a, b, c, d := hexValue(data[i]), hexValue(data[i+1]), hexValue(data[i+2]), hexValue(data[i+3])
	if a|b|c|d > 15 {
		return 0, false
	}
	return rune(a)<<12 | rune(b)<<8 | rune(c)<<4 | rune(d), true
}

// hexValue returns the value of a hexadecimal digit, and 255 for other bytes.
func hexValue(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// ScanNumber scans the number that starts at data[i], which must be a minus
// sign or a digit, and returns the offset after it. integer reports that the
// token has neither fraction nor exponent.
func ScanNumber(data []byte, i int) (end int, integer bool, err error) {
	if data[i] == '-' {
		i++
	}
	switch {
	case i < len(data) && data[i] == '0':
		i++
	case i < len(data) && data[i]-'1' < 9:
		i = digits(data, i+1)
	default:
		return 0, false, fault(data, i, msgNumber)
	}
	switch {
	case i >= len(data):
		return i, true, nil
	case data[i] == '.' || data[i]|0x20 == 'e':
		end, err = scanFraction(data, i)
		return end, false, err
	case data[i]-'0' < 10: // a digit after a leading zero
		return 0, false, fault(data, i, msgNumber)
	}
	return i, true, nil
}

// scanFraction passes over what makes a number more than an integer: a
// fraction, an exponent, or both.
func scanFraction(data []byte, i int) (int, error) {
	if data[i] == '.' {
		start := i + 1
		if i = digits(data, start); i == start {
			return 0, fault(data, i, msgNumber)
		}
	}
	if i >= len(data) || data[i]|0x20 != 'e' {
		return i, nil
	}
	i++
	if i < len(data) && (data[i] == '+' || data[i] == '-') {
		i++
	}
	start := i
	if i = digits(data, start); i == start {
		return 0, fault(data, i, msgNumber)
	}
	return i, nil
}

// digits returns the offset of the first byte at or after i that is no digit.
func digits(data []byte, i int) int {
	for i < len(data) && data[i]-'0' < 10 {
		i++
	}
	return i
}

// ScanLiteral scans true, false or null at data[i] and returns the offset
// after it.
func ScanLiteral(data []byte, i int) (end int, err error) {
	word := ""
	switch data[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return 0, fault(data, i, msgValue)
	}
	if len(data)-i >= len(word) && string(data[i:i+len(word)]) == word {
		return i + len(word), nil
	}
	for k := range len(word) {
		if i+k >= len(data) {
			return 0, fault(data, i+k, msgEnd)
		}
		if data[i+k] != word[k] {
			break
		}
	}
	return 0, fault(data, i, msgValue)
}
