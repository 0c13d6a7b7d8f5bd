package format

import "bytes"

// Limits of RFC 5321 sections 4.5.3.1.1 and 4.5.3.1.2, and of a label in RFC 1035
// section 2.3.4.
const (
	maxLocalPart = 64
	maxDomain    = 255
	maxLabel     = 63
)

// isEmail reports whether text is a Mailbox of RFC 5321 section 4.1.2: a dot
// string or a quoted string, an at sign, and a domain or an address literal. A
// quoted string may hold at signs, a domain may not, so that the last one
// separates the two. The lengths are checked before anything is read.
func isEmail(text []byte) bool {
	at := bytes.LastIndexByte(text, '@')
	if at < 1 || at > maxLocalPart || len(text)-at-1 > maxDomain {
		return false
	}
	local, domain := text[:at], text[at+1:]
	if local[0] == '"' {
		if !isQuotedLocal(local) {
			return false
		}
	} else if !isDotString(local) {
		return false
	}
	// A bracket opens an address literal, as in user@[192.0.2.1].
	if len(domain) > 0 && domain[0] == '[' {
		return isAddressLiteral(domain)
	}
	return isDomain(domain)
}

// isDotString accepts atoms separated by single dots (RFC 5321 section 4.1.2).
// Characters beyond ASCII, which RFC 6531 adds, are not part of draft-07's email.
func isDotString(text []byte) bool {
	before := byte('.') // a dot may not stand first, last or beside another
	for _, c := range text {
		if !is(c, classAtext) && (c != '.' || before == '.') {
			return false
		}
		before = c
	}
	return before != '.'
}

// isQuotedLocal accepts a string in quotes, in which any printable character of
// ASCII may stand behind a backslash (RFC 5321 section 4.1.2, QcontentSMTP).
func isQuotedLocal(text []byte) bool {
	if len(text) < 2 || text[len(text)-1] != '"' {
		return false
	}
	inner := text[1 : len(text)-1]
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c < ' ' || c > '~' || c == '"':
			return false
		case c == '\\':
			// A backslash quotes the next character, which must be there and be
			// printable.
			if i++; i == len(inner) || inner[i] < ' ' || inner[i] > '~' {
				return false
			}
		}
	}
	return true
}

// isDomain accepts labels of letters, digits and inner hyphens. One label is
// enough: RFC 5321 does not ask for a dot, and user@localhost is an address.
func isDomain(text []byte) bool {
	start := 0 // of the label
	for i, c := range text {
		switch {
		case is(c, classLabel):
		case c == '.' && isLabel(text[start:i]):
			start = i + 1
		default:
			return false
		}
	}
	return isLabel(text[start:])
}

// isLabel judges the length of a label and its hyphens.
func isLabel(text []byte) bool {
	return len(text) > 0 && len(text) <= maxLabel && text[0] != '-' && text[len(text)-1] != '-'
}

// isAddressLiteral follows RFC 5321 section 4.1.3, where "::" stands for two
// groups at least. IPv6 is the only tag that is registered.
func isAddressLiteral(text []byte) bool {
	if text[len(text)-1] != ']' {
		return false
	}
	text = text[1 : len(text)-1]
	const tag = "IPv6:"
	if len(text) > len(tag) && bytes.EqualFold(text[:len(tag)], []byte(tag)) {
		return isIPv6(text[len(tag):], 6, true)
	}
	return isIPv4(text, true)
}
