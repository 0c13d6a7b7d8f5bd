package schema

import (
	"strconv"
	"strings"
)

// The languages of the formats, anchored, for RE2. They say the same as the
// validator's own checks, which are written by hand because they are faster and
// report better; tests hold the two to each other. The parts are assembled as
// the ABNF of the RFCs is.
const (
	languageUUID = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`

	datePart = `(?:` +
		`[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|` +
		`(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	hourPart = `(?:[01][0-9]|2[0-3]):[0-5][0-9]`
	zonePart = `(?:\.[0-9]+)?(?:[zZ]|[+-]` + hourPart + `)$`
	// At which minute a second 60 may stand depends on the offset, which would
	// take an automaton of thousands of states. The wider language has it at
	// every minute, the narrower one only at 23:59 UTC.
	dateTimeOver  = `^` + datePart + `[tT]` + hourPart + `:(?:[0-5][0-9]|60)` + zonePart
	dateTimeUnder = `^` + datePart + `[tT](?:` + hourPart + `:[0-5][0-9]` + zonePart + `|23:59:60(?:\.[0-9]+)?[zZ]$)`

	atomPart   = "[a-zA-Z0-9!#$%&'*+\\-/=?^_`{|}~]"
	localPart  = `(?:` + atomPart + `+(?:\.` + atomPart + `+)*|"(?:[ !#-\[\]-~]|\\[ -~])*")`
	labelPart  = `[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?`
	domainPart = labelPart + `(?:\.` + labelPart + `)*`
	// A domain holds no at sign, so these are the lengths around the last one.
	languageEmailLengths = `^(?s:.{1,64})@[^@]{0,255}$`

	uriUnreserved = `a-zA-Z0-9\-._~!$&'()*+,;=`
	uriEscape     = `%[0-9a-fA-F]{2}`
	uriName       = `(?:[` + uriUnreserved + `]|` + uriEscape + `)`
	uriPathChar   = `(?:[` + uriUnreserved + `:@]|` + uriEscape + `)`
	uriFirstChar  = `(?:[` + uriUnreserved + `@]|` + uriEscape + `)` // in a reference without scheme
	uriUser       = `(?:(?:[` + uriUnreserved + `:]|` + uriEscape + `)*@)?`
	uriPath       = `(?:` + uriPathChar + `|/)*`
	uriTail       = `(?:\?(?:` + uriPathChar + `|[/?])*)?(?:#(?:` + uriPathChar + `|[/?])*)?$`
	uriScheme     = `[a-zA-Z][a-zA-Z0-9+\-.]*:`
	uriAbsolute   = `/(?:` + uriPathChar + uriPath + `)?`
	uriRootless   = `(?:` + uriAbsolute + `|` + uriPathChar + uriPath + `)?`
	uriNoScheme   = `(?:` + uriAbsolute + `|` + uriFirstChar + `+(?:/` + uriPath + `)?)?`
)

// languageEmail is an email without the limits on the lengths of its halves. An
// automaton for both at once would need a state for every pair of position in
// the grammar and length; as two languages, the product is only built as far as
// a search goes.
func languageEmail() string {
	const octet = `(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])`
	address := ipv4(octet)
	return `^` + localPart + `@(?:` + domainPart + `|\[(?:` + address + `|[iI][pP][vV]6:` + ipv6(6, address) + `)\])$`
}

// languageURI is a URI or, with reference, also a relative reference.
func languageURI(reference bool) string {
	address := ipv4(`(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`)
	literal := `\[(?:` + ipv6(7, address) + `|[vV][0-9a-fA-F]+\.[` + uriUnreserved + `:]+)\]`
	authority := `//` + uriUser + `(?:` + uriName + `*|` + literal + `)(?::[0-9]*)?(?:/` + uriPath + `)?`
	if reference {
		return `^(?:` + uriScheme + uriRootless + `|(?:` + uriScheme + `)?` + authority + `|` + uriNoScheme + `)` + uriTail
	}
	return `^` + uriScheme + `(?:` + authority + `|` + uriRootless + `)` + uriTail
}

// ipv4 is four octets in the given spelling: RFC 5321 allows leading zeros, RFC
// 3986 does not.
func ipv4(octet string) string { return octet + `(?:\.` + octet + `){3}` }

// ipv6 is an address of eight groups, or of at most some groups around "::",
// where an IPv4 address can take the place of the last two (RFC 4291 section 2.2).
func ipv6(most int, v4 string) string {
	const group = `[0-9a-fA-F]{1,4}`
	forms := []string{`(?:` + group + `:){6}(?:` + group + `:` + group + `|` + v4 + `)`}
	for left := range most + 1 {
		before := ""
		if left > 0 {
			before = group + `(?::` + group + `){` + strconv.Itoa(left-1) + `}`
		}
		right := most - left
		after := ""
		if right > 0 {
			after = `(?:` + group + `:){0,` + strconv.Itoa(right-1) + `}` + group
		}
		if right > 1 {
			after += `|(?:` + group + `:){0,` + strconv.Itoa(right-2) + `}` + v4
		}
		forms = append(forms, before+`::(?:`+after+`)?`)
	}
	return `(?:` + strings.Join(forms, `|`) + `)`
}

// fit is how closely languages stand for a format.
type fit uint8

const (
	fitWide   fit = iota // all strings of the format match, and perhaps others; quick
	fitClose             // the same, with as few others as can be
	fitNarrow            // no others match, and perhaps not all strings of the format
)

// fits returns the fits in the order in which they are tried.
func fits() []fit { return []fit{fitWide, fitClose, fitNarrow} }

// opposite is the fit for the terms that a string lacks a format: outside of a
// language that holds too much lie too few strings, and the other way round.
func (f fit) opposite() fit {
	if f == fitNarrow {
		return fitClose
	}
	return fitNarrow
}

// formatLanguages returns expressions that the strings of a format match all,
// as closely as asked for.
func formatLanguages(f formatName, how fit) []string {
	switch f {
	case nameUUID:
		return []string{languageUUID}
	case nameDateTime:
		if how == fitNarrow {
			return []string{dateTimeUnder}
		}
		return []string{dateTimeOver}
	case nameEmail:
		if how == fitWide {
			return []string{languageEmail()}
		}
		return []string{languageEmailLengths, languageEmail()} // the first is quick to be outside of
	default:
		return []string{languageURI(f == nameURIReference)}
	}
}

// formatSpan returns the lengths that strings of a format can have, which answers
// most conflicts between a format and a length without an automaton.
func formatSpan(f formatName) (least, most int) {
	switch f {
	case nameUUID:
		return 36, 36
	case nameEmail:
		return 3, maxLocalPart + 1 + maxDomain
	case nameDateTime:
		return 20, unbounded
	case nameURI:
		return 2, unbounded
	default:
		return 0, unbounded
	}
}

// formatsClash reports whether a format is required and ruled out at once. A URI
// is also a URI reference.
func (st *state) formatsClash() bool {
	for _, a := range st.texts {
		for _, b := range st.texts {
			if a.op == opFormat && b.op == opNoFormat && (a.format == b.format ||
				a.format == nameURI && b.format == nameURIReference) {
				return true
			}
		}
	}
	return false
}

// formatSamples are strings of a format that read well, and one of a length.
func formatSamples(f formatName, least int) []string {
	const longest = 1 << 16
	pad := strings.Repeat("a", min(least, longest))
	switch f {
	case nameUUID:
		return []string{"0190a6e8-7c31-7d4a-9b2e-5f3c8a1d6e40", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}
	case nameEmail:
		return []string{"user@example.com", "a@b", longEmail(least)}
	case nameURI:
		const short = "https://example.com/"
		return []string{short, "a:", short + pad[min(len(pad), len(short)):]}
	case nameURIReference:
		return []string{"/path", "https://example.com/", "", "/" + pad[min(len(pad), 1):]}
	default:
		const short = "2026-01-15T09:30:00Z"
		digits := strings.Repeat("0", max(1, len(pad)-len(short)-1))
		return []string{short, short[:len(short)-1] + "." + digits + "Z"}
	}
}

// longEmail is an email of a length, if there is one: a local part of up to 64
// characters, and a domain of labels of at most 63.
func longEmail(length int) string {
	if length < 3 || length > maxLocalPart+1+maxDomain {
		return "a@b"
	}
	local := min(maxLocalPart, length-2)
	domain := []byte(strings.Repeat("a", length-local-1))
	const label = 32 // at most one longer, at the end
	for i := label - 1; i < len(domain)-1; i += label {
		domain[i] = '.'
	}
	return strings.Repeat("a", local) + "@" + string(domain)
}
