package ijson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendUnquoted appends the characters that raw stands for to dst and
// returns the result. raw is the content of a string, without its quotes, that
// [ScanString] has accepted; on other input the result is unspecified.
func AppendUnquoted(dst, raw []byte) []byte {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 || n+1 >= len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:n]...)
		c := raw[n+1]
		raw = raw[n+2:]
		if c != 'u' {
			dst = append(dst, unescaped(c))
			continue
		}
		r, _ := hex4(raw, 0)
		raw = raw[min(4, len(raw)):]
		if utf16.IsSurrogate(r) {
			low, _ := hex4(raw, 2)
			raw = raw[min(6, len(raw)):]
			r = utf16.DecodeRune(r, low)
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// unescaped returns what a letter after a backslash stands for. A quote, a
// backslash and a slash stand for themselves.
func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// CodePoints returns the number of Unicode code points that raw stands for.
// raw is the content of a string, without its quotes, that [ScanString] has
// accepted.
func CodePoints(raw []byte) int {
	n := 0
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 || k+1 >= len(raw) {
			return n + countRunes(raw)
		}
		n += countRunes(raw[:k]) + 1
		width := 2
		if raw[k+1] == 'u' {
			width = 6
			if r, _ := hex4(raw, k+2); utf16.IsSurrogate(r) {
				width = 12
			}
		}
		raw = raw[min(k+width, len(raw)):]
	}
}
