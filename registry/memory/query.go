package memory

import (
	"strings"
	"unicode"
)

// maxTerms bounds a query. More words than that choose no better.
const maxTerms = 32

// ftsQuery writes what somebody searches for in the language of FTS5, of which none
// reaches it: each word is a string there. It is "" where the text has no word.
func ftsQuery(text string, all bool) string {
	var terms []string
	add := func(words []string, prefix bool) {
		if len(words) == 0 || len(terms) == maxTerms {
			return
		}
		term := `"` + strings.Join(words, " ") + `"`
		if prefix {
			term += "*"
		}
		terms = append(terms, term)
	}
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 { // between quotes
			add(words(part), false)
			continue
		}
		for field := range strings.FieldsSeq(part) {
			// What is written together, such as AG-142, stands together.
			add(words(field), strings.HasSuffix(field, "*"))
		}
	}
	if all {
		return strings.Join(terms, " AND ")
	}
	return strings.Join(terms, " OR ")
}

// words are the runs of letters and digits of a text. Marks belong to the letter before
// them, and characters for private use count as letters, as in the index.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Co, r)
	})
}
