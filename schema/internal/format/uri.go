package format

import "bytes"

// Classes of bytes in RFC 3986 and RFC 5321.
const (
	classUnreserved = 1 << iota // RFC 3986 section 2.3
	classSubDelim               // RFC 3986 section 2.2
	classHex
	classDigit
	classAlpha
	classAtext // RFC 5322 section 3.2.3
	classPath  // RFC 3986 section 3.3: pchar without percent-encoded bytes, and the slash
	classLabel // RFC 1035 section 2.3.1: what a label consists of
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
	for c := range table {
		if table[c]&(classUnreserved|classSubDelim) != 0 {
			table[c] |= classPath
		}
		if table[c]&(classAlpha|classDigit) != 0 {
			table[c] |= classLabel
		}
	}
	for _, c := range []byte(":@/") {
		table[c] |= classPath
	}
	table['-'] |= classLabel
	return table
}

// is reports whether c belongs to one of the classes.
func is(c byte, classes uint8) bool { return byteClass[c]&classes != 0 }

// isURI reports whether text is a URI of RFC 3986 section 3 or, unless
// absolute is asked for, a relative reference of section 4.2. Only ASCII
// occurs in either: other characters must be percent-encoded. A scheme's own
// rules, such as that http needs a host, are not part of the format.
//
// Each part is read to the first byte that cannot belong to it, which is the next
// part's or a fault.
func isURI(text []byte, absolute bool) bool {
	i := scheme(text)
	switch {
	case i > 0:
	case absolute:
		return false
	default:
		// Without a scheme, the first segment must not hold a colon.
		first := uriRun(text, 0, classUnreserved|classSubDelim, '@')
		if first < len(text) && text[first] == ':' {
			return false
		}
	}
	// Two slashes begin an authority, which ends at the next slash, question mark or
	// number sign (section 3.2). A path without authority must not begin with two.
	if len(text)-i >= 2 && text[i] == '/' && text[i+1] == '/' {
		end := authorityEnd(text, i+2)
		if end < 0 {
			return false
		}
		i = end
	}
	i = uriRun(text, i, classPath, nothing)
	if i < len(text) && text[i] == '?' {
		i = uriRun(text, i+1, classPath, '?')
	}
	if i < len(text) && text[i] == '#' {
		i = uriRun(text, i+1, classPath, '?')
	}
	return i == len(text)
}

// scheme returns the offset after the scheme and its colon, or 0 if text has none. It
// follows RFC 3986 section 3.1: a letter, then letters, digits, plus, minus and dot.
func scheme(text []byte) int {
	if len(text) == 0 || !is(text[0], classAlpha) {
		return 0
	}
	for i, c := range text[1:] {
		if !is(c, classAlpha|classDigit) && c != '+' && c != '-' && c != '.' {
			if c == ':' {
				return i + 2
			}
			break
		}
	}
	return 0
}

// nothing is the extra byte of a run that has none: it is unreserved.
const nothing = '~'

// uriRun returns the offset of the first byte at or after i that is neither in classes,
// nor extra, nor part of a percent-encoded byte. The productions pchar, query and
// fragment of RFC 3986 differ only in the extra ones.
func uriRun(text []byte, i int, classes, extra byte) int {
	for {
		for i < len(text) && is(text[i], classes) {
			i++
		}
		switch {
		case i == len(text):
			return i
		case text[i] == extra:
			i++
		case text[i] == '%' && i+2 < len(text) && is(text[i+1], classHex) && is(text[i+2], classHex):
			i += 3
		default:
			return i
		}
	}
}

// uriChars reports whether text is such a run as a whole.
func uriChars(text []byte, extra byte) bool {
	return uriRun(text, 0, classUnreserved|classSubDelim, extra) == len(text)
}

// authorityEnd returns the end of the authority at i, or a negative number if it is
// none. Most are a name.
func authorityEnd(text []byte, i int) int {
	end := uriRun(text, i, classUnreserved|classSubDelim, nothing)
	if isPathStart(text, end) {
		return end
	}
	rest := bytes.IndexAny(text[end:], "/?#")
	if rest < 0 {
		rest = len(text) - end
	}
	end += rest
	if !isAuthority(text[i:end]) {
		return -1
	}
	return end
}

// isPathStart reports whether an authority can end at i.
func isPathStart(text []byte, i int) bool {
	return i == len(text) || text[i] == '/' || text[i] == '?' || text[i] == '#'
}

// isAuthority follows RFC 3986 section 3.2: [userinfo "@"] host [":" port].
func isAuthority(text []byte) bool {
	// The first at sign ends the user information: neither part may hold one.
	if user, host, ok := bytes.Cut(text, []byte("@")); ok {
		if !uriChars(user, ':') {
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
	return uriChars(host, nothing) && isPort(port)
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
