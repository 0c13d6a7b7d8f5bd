package ijson

import (
	"bytes"
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
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw, 0)
			raw = raw[min(4, len(raw)):]
			if r >= 0xD800 && r <= 0xDFFF {
				low, _ := hex4(raw, 2)
				raw = raw[min(6, len(raw)):]
				r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
			}
			dst = utf8.AppendRune(dst, r)
		default: // a quote, a backslash or a slash stands for itself
			dst = append(dst, c)
		}
	}
}

// CodePoints returns the number of Unicode code points that raw stands for.
// raw is the content of a string, without its quotes, that [ScanString] has
// accepted.
func CodePoints(raw []byte) int {
	n := 0
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 || k+1 >= len(raw) {
			return n + utf8.RuneCount(raw)
		}
		n += utf8.RuneCount(raw[:k]) + 1
		width := 2
		if raw[k+1] == 'u' {
			width = 6
			if r, _ := hex4(raw, k+2); r >= 0xD800 && r <= 0xDFFF {
				width = 12
			}
		}
		raw = raw[min(k+width, len(raw)):]
	}
}
