package jcs

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unquote reads the string at pos and appends its characters to dst.
func (w *writer) unquote(dst []byte) ([]byte, error) {
	w.pos++
	for w.pos < len(w.src) {
		c := w.src[w.pos]
		switch {
		case c == '"':
			w.pos++
			return dst, nil
		case c == '\\':
			var err error
			if dst, err = w.escape(dst); err != nil {
				return dst, err
			}
		case c < 0x20:
			return dst, w.fail("control character in a string")
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			w.pos++
		default:
			r, size := utf8.DecodeRune(w.src[w.pos:])
			if r == utf8.RuneError && size == 1 {
				return dst, w.fail("invalid UTF-8")
			}
			dst = append(dst, w.src[w.pos:w.pos+size]...)
			w.pos += size
		}
	}
	return dst, w.fail("unexpected end in a string")
}

// escape reads the escape sequence at pos.
func (w *writer) escape(dst []byte) ([]byte, error) {
	start := w.pos
	if w.pos+1 >= len(w.src) {
		return dst, w.failAt(len(w.src), "unexpected end in a string")
	}
	c := w.src[w.pos+1]
	w.pos += 2
	switch c {
	case '"', '\\', '/':
		return append(dst, c), nil
	case 'b':
		return append(dst, '\b'), nil
	case 'f':
		return append(dst, '\f'), nil
	case 'n':
		return append(dst, '\n'), nil
	case 'r':
		return append(dst, '\r'), nil
	case 't':
		return append(dst, '\t'), nil
	case 'u':
		r, ok := w.hex4()
		if !ok {
			return dst, w.failAt(start, `\u needs four hexadecimal digits`)
		}
		if utf16.IsSurrogate(r) {
			if r, ok = w.lowSurrogate(r); !ok {
				return dst, w.failAt(start, "lone surrogate")
			}
		}
		return utf8.AppendRune(dst, r), nil
	default:
		return dst, w.failAt(start, "unknown escape")
	}
}

func (w *writer) lowSurrogate(high rune) (rune, bool) {
	if w.pos+1 >= len(w.src) || w.src[w.pos] != '\\' || w.src[w.pos+1] != 'u' {
		return 0, false
	}
	w.pos += 2
	low, ok := w.hex4()
	r := utf16.DecodeRune(high, low)
	return r, ok && r != utf8.RuneError
}

func (w *writer) hex4() (rune, bool) {
	if w.pos+4 > len(w.src) {
		return 0, false
	}
	var r rune
	for _, c := range w.src[w.pos : w.pos+4] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	w.pos += 4
	return r, true
}

// appendString appends s, valid UTF-8, as RFC 8785 section 3.2.2.2 writes it.
func appendString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range s {
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			if c < 0x20 {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}
