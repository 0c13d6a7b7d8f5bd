package ijson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Each constant repeats one byte eight times: ones its lowest bit, highs its
// highest bit.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks the highest bit of each byte in w that ends a plain run of a
// string: a quote, a backslash, a control character or a byte beyond ASCII.
// Only the lowest mark is exact: subtracting 1 from a byte that is 0 borrows
// from the byte above it, which may then be marked although it is plain.
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
		// Eight bytes at a time while all of them are plain.
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
			i++ // fewer than eight bytes of data are left
		default:
			if i, err = scanRunes(data, i); err != nil {
				return 0, false, err
			}
		}
	}
}

// PlainEnd returns the offset of the quote that ends the string whose content begins at
// data[i], or a negative number if the string holds an escape or anything that
// [ScanString] refuses.
func PlainEnd(data []byte, i int) int {
	for i < len(data) {
		for len(data)-i >= 8 {
			m := special(binary.LittleEndian.Uint64(data[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(data) {
			break
		}
		switch c := data[i]; {
		case c == '"':
			return i
		case c == '\\', c < 0x20:
			return -1
		case c < utf8.RuneSelf:
			i++ // fewer than eight bytes of data are left
		default:
			var err error
			if i, err = scanRunes(data, i); err != nil {
				return -1
			}
		}
	}
	return -1
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
// RFC 7493 section 2.1 forbids a half that stands alone.
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
