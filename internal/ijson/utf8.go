package ijson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// This file reads characters beyond ASCII several bytes at a time. Decoding them one by
// one takes most of the time that a text in Chinese, Arabic or Greek takes. Tests hold
// both functions against unicode/utf8.

// scanRunes passes over a run of characters beyond ASCII. Those of two and three bytes,
// which are nearly all, are told by the bits that their encoding fixes; whatever that
// does not settle goes to the decoder.
func scanRunes(data []byte, i int) (int, error) {
	for i < len(data) && data[i] >= utf8.RuneSelf {
		if len(data)-i >= 8 {
			w := binary.LittleEndian.Uint64(data[i:])
			switch {
			case threeBytes(w):
				i += 3
				if threeBytes(w >> 24) {
					i += 3
				}
				continue
			case w&0xC0E0 == 0x80C0 && w&0x1E != 0: // C0 and C1 encode ASCII, at length
				i += 2
				continue
			}
		}
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 { // n is 3 for U+FFFD itself
			return 0, fault(data, i, msgUTF8)
		}
		i += n
	}
	return i, nil
}

// threeBytes reports whether w starts with the lowest byte of a character of three bytes.
// Two values of the first four bits and of the bit that decides belong to none: those
// that two bytes can encode, and the surrogates.
func threeBytes(w uint64) bool {
	const overlong, surrogate = 0x0000, 0x200D
	first := w & 0x200F
	return w&0xC0C0F0 == 0x8080E0 && first != overlong && first != surrogate
}

// countRunes returns the number of characters in text, which is valid UTF-8: of its
// bytes that do not continue a character.
func countRunes(text []byte) int {
	n := len(text)
	for len(text) >= 8 {
		w := binary.LittleEndian.Uint64(text)
		n -= bits.OnesCount64(w & highs &^ (w << 1)) // the highest bits are 10
		text = text[8:]
	}
	for _, c := range text {
		if c&0xC0 == 0x80 {
			n--
		}
	}
	return n
}
