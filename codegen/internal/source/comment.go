package source

import (
	"strings"
	"unicode"
)

// CommentLines splits a description into lines that are safe in a comment: no
// control characters, none that reverse the direction of text, and no
// directive of a type checker. It is nil for a blank description.
func CommentLines(doc string) []string {
	// Every character that some target language takes as the end of a line: a
	// description must not leave its comment.
	lines := strings.FieldsFunc(doc, func(r rune) bool {
		return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029
	})
	var out []string
	for _, line := range lines {
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || reorders(r) {
				return ' '
			}
			return r
		}, line)
		// "@ts-ignore" in a comment would switch off checks of the next line.
		line = strings.TrimSpace(strings.ReplaceAll(line, "@ts-", "@ ts-"))
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// reorders reports whether r changes the order in which text is displayed. A
// description could otherwise make code look like something else (CVE-2021-42574).
func reorders(r rune) bool {
	return r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x61c
}
