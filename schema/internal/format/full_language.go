package format

import (
	"regexp"
	"strings"
)

const (
	pointerPart  = `(?:/(?:[^~/]|~[01])*)*`
	numberPart   = `(?:0|[1-9][0-9]*)`
	octetPart    = `(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	timeOver     = `^` + hourPart + `:(?:[0-5][0-9]|60)` + zonePart
	timeUnder    = `^(?:` + hourPart + `:[0-5][0-9]` + zonePart + `|23:59:60(?:\.[0-9]+)?[zZ]$)`
	hostnameOver = `^[a-zA-Z0-9\-.]{1,253}$`
)

// languagesFull is Languages for the formats that the subset lacks. Those without a
// grammar of their own here stand between all strings, which is no expression at all,
// and a few samples.
func languagesFull(f Name, how Fit) []string {
	switch f {
	case Date:
		return []string{`^` + datePart + `$`}
	case Time:
		if how == Narrow {
			return []string{timeUnder}
		}
		return []string{timeOver}
	case IPv4:
		return []string{`^` + ipv4(octetPart) + `$`}
	case IPv6:
		return []string{`^` + ipv6(7, ipv4(octetPart)) + `$`}
	case JSONPointer:
		return []string{`^` + pointerPart + `$`}
	case RelativeJSONPointer:
		return []string{`^` + numberPart + `(?:[+\-]` + numberPart + `)?(?:#|` + pointerPart + `)$`}
	case Hostname:
		if how != Narrow {
			return []string{hostnameOver}
		}
	}
	if how != Narrow {
		return nil
	}
	quoted := samplesFull(f)
	for i := range quoted {
		quoted[i] = regexp.QuoteMeta(quoted[i])
	}
	return []string{`^(?:` + strings.Join(quoted, `|`) + `)$`}
}

// samplesFull is Samples for these formats.
func samplesFull(f Name) []string {
	switch f {
	case Date:
		return []string{"2026-01-15", "2024-02-29"}
	case Time:
		return []string{"09:30:00Z", "09:30:00+02:00"}
	case Duration:
		return []string{"P1D", "PT1H30M", "P2W"}
	case Hostname:
		return []string{"example.com", "localhost", "a"}
	case IDNHostname:
		return []string{"example.com", "bücher.example", "a"}
	case IDNEmail:
		return []string{"user@example.com", "müller@example.com"}
	case IPv4:
		return []string{"192.0.2.1", "10.0.0.1"}
	case IPv6:
		return []string{"2001:db8::1", "::"}
	case IRI:
		return []string{"https://example.com/", "https://example.com/straße"}
	case IRIReference:
		return []string{"/path", "https://example.com/straße", ""}
	case URITemplate:
		return []string{"/items/{id}", "/path", ""}
	case JSONPointer:
		return []string{"/a", "", "/a/0"}
	case RelativeJSONPointer:
		return []string{"0", "1/a", "0#"}
	case Regex:
		return []string{"^a+$", "text", ""}
	}
	return nil
}
