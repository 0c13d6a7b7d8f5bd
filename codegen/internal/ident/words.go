package ident

import (
	"strings"
	"unicode"
)

// Words splits a name at everything but letters and digits of ASCII.
func Words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool {
		return r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// CamelWords is [Words] split once more before a capital that follows a small
// letter or a digit: prUrl is pr and Url.
func CamelWords(name string) []string {
	var words []string
	for _, w := range Words(name) {
		start := 0
		for i := 1; i < len(w); i++ {
			if w[i] >= 'A' && w[i] <= 'Z' && (w[i-1] < 'A' || w[i-1] > 'Z') {
				words = append(words, w[start:i])
				start = i
			}
		}
		words = append(words, w[start:])
	}
	return words
}

// Pascal joins the capitalised words of a name: review-pr is ReviewPr. One that
// would start with a digit gets an X before it, and one without any word is X.
func Pascal(name string) string {
	var b strings.Builder
	for _, w := range Words(name) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return StartWithLetter(b.String(), "X")
}

// StartWithLetter is name, behind prefix if it is empty or starts with a digit.
func StartWithLetter(name, prefix string) string {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return prefix + name
	}
	return name
}
