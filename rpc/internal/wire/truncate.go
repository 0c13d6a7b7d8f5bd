package wire

import "unicode/utf8"

// Truncate returns s if it has at most most bytes, and otherwise its longest prefix
// of whole code points that does, with an ellipsis.
func Truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
