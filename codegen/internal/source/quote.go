package source

import (
	"fmt"
	"strings"
	"unicode"
)

// Quote writes s between double quotes, with the escapes that JSON, TypeScript
// and Python share. beyond writes an escape of a rune above U+FFFF.
func Quote(s string, beyond func(rune) string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		// Readable text stays readable; everything invisible is escaped.
		case unicode.IsPrint(r) && !reorders(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(beyond(r))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
