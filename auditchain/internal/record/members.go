package record

import (
	"iter"
	"strings"
)

// members yields the quoted names and the raw values of an object's members.
// The object must be canonical (RFC 8785), which package jcs guarantees: valid,
// and without whitespace outside strings. Only then is it safe to scan without
// checking bounds or syntax, which is several times faster than decoding.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for i := 1; object[i] != '}'; {
			nameEnd := valueEnd(object, i)
			end := valueEnd(object, nameEnd+1)
			if !yield(object[i:nameEnd], object[nameEnd+1:end]) {
				return
			}
			if i = end; object[i] == ',' {
				i++
			}
		}
	}
}

// valueEnd returns the end of the value that starts at i. Nested values are
// skipped by counting brackets.
func valueEnd(b string, i int) int {
	for depth := 0; ; i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i+1)
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // ends the object that a number or literal is in
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
	}
}

// stringEnd returns the position of the quote that ends the string whose characters begin at
// i. Most strings have no escapes.
func stringEnd(b string, i int) int {
	end := i + strings.IndexByte(b[i:], '"')
	if strings.IndexByte(b[i:end], '\\') < 0 {
		return end
	}
	for ; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++ // the escaped character may be a quote
		}
	}
	return i
}
