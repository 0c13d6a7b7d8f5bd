package truncate

import "unicode/utf8"

// Mark stands where text was cut off.
const Mark = "…"

// String returns s if it has at most limit bytes. Otherwise it returns the
// longest beginning of s that has at most limit bytes and does not end inside
// a code point, followed by [Mark]: the result has at most limit+len(Mark)
// bytes, and is valid UTF-8 if s is. A negative limit counts as 0.
func String(s string, limit int) string {
	limit = max(limit, 0)
	if len(s) <= limit {
		return s
	}
	// A code point has at most three bytes before its last one. Where more bytes
	// than that are no start of one, s is not UTF-8, and any place is as good.
	for back := range min(limit, utf8.UTFMax-1) + 1 {
		if utf8.RuneStart(s[limit-back]) {
			return s[:limit-back] + Mark
		}
	}
	return s[:limit] + Mark
}
