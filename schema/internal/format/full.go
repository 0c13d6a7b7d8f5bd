package format

import (
	"bytes"
	"unicode/utf8"
)

// The formats of the drafts that the subset lacks.
const (
	Date                Name = "date"                  // RFC 3339 full-date
	Time                Name = "time"                  // RFC 3339 full-time
	Duration            Name = "duration"              // RFC 3339 appendix A
	Hostname            Name = "hostname"              // RFC 1123 section 2.1, with the A-labels of RFC 5890
	IDNHostname         Name = "idn-hostname"          // RFC 5890
	IDNEmail            Name = "idn-email"             // RFC 6531
	IPv4                Name = "ipv4"                  // RFC 2673 section 3.2
	IPv6                Name = "ipv6"                  // RFC 4291 section 2.2
	IRI                 Name = "iri"                   // RFC 3987
	IRIReference        Name = "iri-reference"         // RFC 3987
	URITemplate         Name = "uri-template"          // RFC 6570
	JSONPointer         Name = "json-pointer"          // RFC 6901
	RelativeJSONPointer Name = "relative-json-pointer" // draft-bhutton-relative-json-pointer
	Regex               Name = "regex"                 // ECMA-262
)

// isFull reports whether a format is one of these.
func isFull(f Name) bool {
	switch f {
	case Date, Time, Duration, Hostname, IDNHostname, IDNEmail, IPv4, IPv6, IRI, IRIReference, URITemplate,
		JSONPointer, RelativeJSONPointer, Regex:
		return true
	}
	return false
}

// matchFull is Match for these formats.
func (f Name) matchFull(text []byte) bool {
	switch f {
	case Date:
		return len(text) == 10 && hasDateShape(text) && isDate(text)
	case Time:
		// Any date serves: a time has the same form on each.
		return isDateTime(append([]byte("2000-01-01T"), text...))
	case Duration:
		return isDuration(text)
	case Hostname:
		return isHostname(text, false)
	case IDNHostname:
		return isHostname(text, true)
	case IDNEmail:
		return isIDNEmail(text)
	case IPv4:
		return isIPv4(text, false)
	case IPv6:
		return isIPv6(text, 7, false)
	case IRI:
		return isIRI(text, true)
	case IRIReference:
		return isIRI(text, false)
	case URITemplate:
		return isURITemplate(text)
	case JSONPointer:
		return isJSONPointer(text)
	case RelativeJSONPointer:
		return isRelativePointer(text)
	case Regex:
		return isRegex(text)
	}
	return true
}

// isDuration follows the grammar of RFC 3339 appendix A: weeks stand alone, and the
// units of date and time come in order, none left out between two that are there.
func isDuration(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("P"))
	if !ok {
		return false
	}
	date, time, timed := bytes.Cut(rest, []byte("T"))
	if !timed && len(date) > 1 && date[len(date)-1] == 'W' {
		return isUnits(date, "W")
	}
	if timed && !isUnits(time, "HMS") {
		return false
	}
	return len(date) == 0 && timed || isUnits(date, "YMD")
}

// isUnits reports whether text is numbers followed by units, which are consecutive ones
// of a list.
func isUnits(text []byte, units string) bool {
	next := -1
	for len(text) > 0 {
		digits := 0
		for digits < len(text) && is(text[digits], classDigit) {
			digits++
		}
		if digits == 0 || digits == len(text) {
			return false
		}
		at := bytes.IndexByte([]byte(units), text[digits])
		if at < 0 || next >= 0 && at != next {
			return false
		}
		next = at + 1
		text = text[digits+1:]
	}
	return next >= 0
}

// isIDNEmail is isEmail with characters beyond ASCII (RFC 6531 section 3.3).
func isIDNEmail(text []byte) bool {
	at := bytes.LastIndexByte(text, '@')
	if at < 1 || !utf8.Valid(text) {
		return false
	}
	// Every such character may stand where a letter may.
	return isEmail(append(asLetters(text[:at]), '@', 'a')) &&
		(isEmail(append([]byte("a@"), text[at+1:]...)) || isHostname(text[at+1:], true))
}

// asLetters replaces characters beyond ASCII by letters.
func asLetters(text []byte) []byte {
	plain := make([]byte, 0, len(text)+2)
	for _, r := range string(text) {
		if r >= utf8.RuneSelf {
			r = 'a'
		}
		plain = append(plain, byte(r))
	}
	return plain
}

// isIRI is isURI with the characters of RFC 3987 section 2.2, which may stand where
// unreserved ones may. Those for private use are for the query only.
func isIRI(text []byte, absolute bool) bool {
	plain := make([]byte, 0, len(text))
	query := false
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf:
			query = r == '?' || query && r != '#'
			plain = append(plain, byte(r))
			continue
		case r < 0xA0, r == utf8.RuneError, r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE, r >= 0xFFF0 && r <= 0xFFFF,
			!query && (r >= 0xE000 && r <= 0xF8FF || r >= 0xE0000 && r <= 0xE0FFF || r >= 0xF0000):
			return false
		}
		plain = append(plain, 'a')
	}
	return isURI(plain, absolute)
}

// isURITemplate follows RFC 6570 section 2: literals, and expressions in braces.
func isURITemplate(text []byte) bool {
	for len(text) > 0 {
		switch c := text[0]; {
		case c == '{':
			end := bytes.IndexByte(text, '}')
			if end < 0 || !isExpression(text[1:end]) {
				return false
			}
			text = text[end:]
		case c <= ' ', c == '"', c == '<', c == '>', c == '\\', c == '^', c == '`', c == '|', c == '}', c == 0x7F:
			return false
		case c == '%' && (len(text) < 3 || !is(text[1], classHex) || !is(text[2], classHex)):
			return false
		}
		text = text[1:]
	}
	return true
}

// isExpression follows RFC 6570 section 2.2: an operator, and variables.
func isExpression(text []byte) bool {
	if len(text) > 0 && bytes.IndexByte([]byte("+#./;?&=,!@|"), text[0]) >= 0 {
		text = text[1:]
	}
	for variable := range bytes.SplitSeq(text, []byte(",")) {
		name, prefix, cut := bytes.Cut(bytes.TrimSuffix(variable, []byte("*")), []byte(":"))
		if cut && (len(prefix) == 0 || len(prefix) > 4 || prefix[0] == '0' || !allDigits(prefix) || variable[len(variable)-1] == '*') {
			return false
		}
		if !isVariable(name) {
			return false
		}
	}
	return true
}

// isVariable follows RFC 6570 section 2.3.
func isVariable(name []byte) bool {
	dot := true // a dot may not stand first, last or beside another
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case is(c, classAlpha|classDigit) || c == '_':
			dot = false
		case c == '%' && i+2 < len(name) && is(name[i+1], classHex) && is(name[i+2], classHex):
			dot = false
			i += 2
		case c == '.' && !dot:
			dot = true
		default:
			return false
		}
	}
	return !dot
}

// allDigits reports whether text is digits.
func allDigits(text []byte) bool {
	for _, c := range text {
		if !is(c, classDigit) {
			return false
		}
	}
	return true
}

// isJSONPointer follows RFC 6901 section 3: empty, or segments behind slashes in which
// a tilde is followed by 0 or 1.
func isJSONPointer(text []byte) bool {
	if len(text) > 0 && text[0] != '/' {
		return false
	}
	for i, c := range text {
		if c == '~' && (i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1') {
			return false
		}
	}
	return true
}

// isRelativePointer accepts a number without leading zeros, perhaps a shift, and a
// pointer or a number sign.
func isRelativePointer(text []byte) bool {
	text, ok := cutNumber(text)
	if !ok {
		return false
	}
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		if text, ok = cutNumber(text[1:]); !ok {
			return false
		}
	}
	return string(text) == "#" || isJSONPointer(text)
}

// cutNumber removes digits, of which the first is zero only if it is the only one.
func cutNumber(text []byte) (rest []byte, ok bool) {
	end := 0
	for end < len(text) && is(text[end], classDigit) {
		end++
	}
	return text[end:], end == 1 || end > 1 && text[0] != '0'
}
