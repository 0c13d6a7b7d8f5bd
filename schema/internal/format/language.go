package format

import (
	"math"
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

// Fit is how closely languages stand for a format.
type Fit uint8

// The fits.
const (
	Wide   Fit = iota // all strings of the format match, and perhaps others; quick
	Close             // the same, with as few others as can be
	Narrow            // no others match, and perhaps not all strings of the format
)

// Fits returns the fits in the order in which they are tried.
func Fits() []Fit { return []Fit{Wide, Close, Narrow} }

// Opposite is the fit for the terms that a string lacks a format: outside of a
// language that holds too much lie too few strings, and the other way round.
func (f Fit) Opposite() Fit {
	if f == Narrow {
		return Close
	}
	return Narrow
}

// Languages returns expressions that the strings of a format match all,
// as closely as asked for.
func Languages(f Name, how Fit) []string {
	switch f {
	case UUID:
		return []string{languageUUID}
	case DateTime:
		if how == Narrow {
			return []string{dateTimeUnder}
		}
		return []string{dateTimeOver}
	case Email:
		if how == Wide {
			return []string{languageEmail()}
		}
		return []string{languageEmailLengths, languageEmail()} // the first is quick to be outside of
	case URI, URIReference:
		return []string{languageURI(f == URIReference)}
	default:
		return languagesFull(f, how)
	}
}

// Span returns the lengths that strings of a format can have, which answers
// most conflicts between a format and a length without an automaton.
func Span(f Name) (least, most int) {
	switch f {
	case UUID:
		return 36, 36
	case Email:
		return 3, maxLocalPart + 1 + maxDomain
	case DateTime:
		return 20, math.MaxInt
	case URI:
		return 2, math.MaxInt
	default:
		return 0, math.MaxInt
	}
}
