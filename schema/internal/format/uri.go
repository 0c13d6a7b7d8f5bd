package format

import (
	"bytes"
	"strings"
)

// Classes of bytes in RFC 3986 and RFC 5321.
const (
	classUnreserved = 1 << iota // RFC 3986 section 2.3
	classSubDelim               // RFC 3986 section 2.2
	classHex
	classDigit
	classAlpha
	classAtext // RFC 5322 section 3.2.3
)

// byteClass holds the classes of each byte, so that a test for several sets at
// once is one look-up.
//
//nolint:gochecknoglobals // a table that nothing writes
var byteClass = classify()

// classify builds byteClass from the sets as the RFCs list them.
func classify() (table [256]uint8) {
	for c := byte('a'); c <= 'z'; c++ {
		table[c] |= classAlpha
		table[c-'a'+'A'] |= classAlpha
	}
	for c := byte('0'); c <= '9'; c++ {
		table[c] |= classDigit
	}
	for _, c := range []byte("0123456789abcdefABCDEF") {
		table[c] |= classHex
	}
	for c := range table {
		if table[c]&(classAlpha|classDigit) != 0 {
			table[c] |= classUnreserved | classAtext
		}
	}
	for _, c := range []byte("-._~") {
		table[c] |= classUnreserved
	}
	for _, c := range []byte("!$&'()*+,;=") {
		table[c] |= classSubDelim
	}
	for _, c := range []byte("!#$%&'*+-/=?^_`{|}~") {
		table[c] |= classAtext
	}
	return table
}

// is reports whether c belongs to one of the classes.
func is(c byte, classes uint8) bool { return byteClass[c]&classes != 0 }

// isURI reports whether text is a URI of RFC 3986 section 3 or, unless
// absolute is asked for, a relative reference of section 4.2. Only ASCII
// occurs in either: other characters must be percent-encoded. A scheme's own
// rules, such as that http needs a host, are not part of the format.
func isURI(text []byte, absolute bool) bool {
	end := bytes.IndexAny(text, ":/?#")
	if end >= 0 && text[end] == ':' {
		// Without a scheme, the first segment must not hold a colon.
		if !isScheme(text[:end]) {
			return false
		}
		text = text[end+1:]
	} else if absolute {
		return false
	}
	// The fragment is cut off before the query, because it may hold question
	// marks (RFC 3986 sections 3.4 and 3.5).
	text, fragment, _ := bytes.Cut(text, []byte("#"))
	text, query, _ := bytes.Cut(text, []byte("?"))
	if !uriChars(fragment, ":@/?") || !uriChars(query, ":@/?") {
		return false
	}
	// Two slashes begin an authority, which ends at the next slash (section
	// 3.2). A path without authority must not begin with two.
	if rest, ok := bytes.CutPrefix(text, []byte("//")); ok {
		slash := bytes.IndexByte(rest, '/')
		if slash < 0 {
			slash = len(rest)
		}
		if !isAuthority(rest[:slash]) {
			return false
		}
		text = rest[slash:]
	}
	return uriChars(text, ":@/")
}

// isScheme follows RFC 3986 section 3.1: a letter, then letters, digits, plus,
// minus and dot.
func isScheme(text []byte) bool {
	if len(text) == 0 || !is(text[0], classAlpha) {
		return false
	}
	for _, c := range text[1:] {
		if !is(c, classAlpha|classDigit) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// uriChars reports whether text is made of unreserved characters, sub-delims,
// percent-encoded bytes and those in extra. The productions pchar, query and
// fragment of RFC 3986 differ only in the extra ones.
func uriChars(text []byte, extra string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if is(c, classUnreserved|classSubDelim) {
			continue
		}
		if c == '%' && i+2 < len(text) && is(text[i+1], classHex) && is(text[i+2], classHex) {
			i += 2
			continue
		}
		if strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return true
}

// isAuthority follows RFC 3986 section 3.2: [userinfo "@"] host [":" port].
func isAuthority(text []byte) bool {
	// The first at sign ends the user information: neither part may hold one.
	if user, host, ok := bytes.Cut(text, []byte("@")); ok {
		if !uriChars(user, ":") {
			return false
		}
		text = host
	}
	if len(text) > 0 && text[0] == '[' {
		end := bytes.IndexByte(text, ']')
		return end > 0 && isIPLiteral(text[1:end]) && isPort(text[end+1:])
	}
	// A registered name holds no colon, so that the first one begins the port.
	// IPv4 addresses need no rule of their own: they are registered names too.
	host, port := text, []byte(nil)
	if colon := bytes.IndexByte(text, ':'); colon >= 0 {
		host, port = text[:colon], text[colon:]
	}
	return uriChars(host, "") && isPort(port)
}

// isPort accepts nothing, or a colon and any number of digits, none included
// (RFC 3986 section 3.2.3).
func isPort(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	for _, c := range text[1:] {
		if !is(c, classDigit) {
			return false
		}
	}
	return text[0] == ':'
}

// isIPLiteral accepts what stands between brackets: an IPv6 address or the
// form reserved for its successors.
func isIPLiteral(text []byte) bool {
	if len(text) > 0 && text[0]|0x20 == 'v' {
		version, address, ok := bytes.Cut(text[1:], []byte("."))
		if !ok || len(version) == 0 || len(address) == 0 {
			return false
		}
		for _, c := range version {
			if !is(c, classHex) {
				return false
			}
		}
		for _, c := range address {
			if !is(c, classUnreserved|classSubDelim) && c != ':' {
				return false
			}
		}
		return true
	}
	return isIPv6(text, 7, false)
}
