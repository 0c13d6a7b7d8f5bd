package schema

// The languages of the formats, anchored, for RE2. Where a format has rules
// that an automaton would be large for, there is one language that holds at
// least its strings and one that holds at most its strings; the tests compare
// both with the format's own check.
const (
	languageUUID = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`

	datePart = `(?:` +
		`[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|` +
		`(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	hourPart = `(?:[01][0-9]|2[0-3]):[0-5][0-9]`
	zonePart = `(?:\.[0-9]+)?(?:[zZ]|[+-]` + hourPart + `)$`
	// A second 60 depends on the offset; the wider language always has it.
	dateTimeOver  = `^` + datePart + `[tT]` + hourPart + `:(?:[0-5][0-9]|60)` + zonePart
	dateTimeUnder = `^` + datePart + `[tT]` + hourPart + `:[0-5][0-9]` + zonePart

	// The wider language has no limits on lengths and lets an address literal
	// be anything of its characters.
	atomPart   = "[a-zA-Z0-9!#$%&'*+\\-/=?^_`{|}~]"
	localPart  = `(?:` + atomPart + `+(?:\.` + atomPart + `+)*|"(?:[ !#-\[\]-~]|\\[ -~])*")`
	domainPart = `[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?)*`
	emailOver  = `^` + localPart + `@(?:` + domainPart + `|\[[a-zA-Z0-9:.]*\])$`
	emailUnder = `^` + atomPart + `{1,64}@[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,40}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,40}[a-zA-Z0-9])?){0,4}$`

	// The wider language lets an IP literal be anything of its characters, the
	// narrower one has none.
	uriChar      = `(?:[a-zA-Z0-9\-._~!$&'()*+,;=]|%[0-9a-fA-F]{2})`
	uriPathChar  = `(?:[a-zA-Z0-9\-._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})`
	uriFirstChar = `(?:[a-zA-Z0-9\-._~!$&'()*+,;=@]|%[0-9a-fA-F]{2})`
	uriUser      = `(?:(?:[a-zA-Z0-9\-._~!$&'()*+,;=:]|%[0-9a-fA-F]{2})*@)?`
	uriPort      = `(?::[0-9]*)?`
	uriTail      = `(?:\?(?:` + uriPathChar + `|[/?])*)?(?:#(?:` + uriPathChar + `|[/?])*)?$`
	uriScheme    = `[a-zA-Z][a-zA-Z0-9+\-.]*:`
	uriHostOver  = `(?:` + uriChar + `*|\[[a-zA-Z0-9\-._~!$&'()*+,;=:]+\])`
	uriHostUnder = uriChar + `*`
	uriPath      = `(?:` + uriPathChar + `|/)*`
	uriRest      = `(?:/` + uriPath + `)?`
	uriRootless  = `(?:/(?:` + uriPathChar + uriPath + `)?|` + uriPathChar + uriPath + `)?`
	uriNoScheme  = `(?:/(?:` + uriPathChar + uriPath + `)?|` + uriFirstChar + `+(?:/` + uriPath + `)?)?`
	uriOver      = `^` + uriScheme + `(?://` + uriUser + uriHostOver + uriPort + uriRest + `|` + uriRootless + `)` + uriTail
	uriUnder     = `^` + uriScheme + `(?://` + uriUser + uriHostUnder + uriPort + uriRest + `|` + uriRootless + `)` + uriTail
	uriRefOver   = `^(?:` + uriScheme + `(?://` + uriUser + uriHostOver + uriPort + uriRest + `|` + uriRootless + `)|//` + uriUser + uriHostOver + uriPort + uriRest + `|` + uriNoScheme + `)` + uriTail
	uriRefUnder  = `^(?:` + uriScheme + `(?://` + uriUser + uriHostUnder + uriPort + uriRest + `|` + uriRootless + `)|//` + uriUser + uriHostUnder + uriPort + uriRest + `|` + uriNoScheme + `)` + uriTail
)

// formatLanguage returns an expression that holds all strings of a format, and
// perhaps others, or without over perhaps not all, and no others.
func formatLanguage(f Format, over bool) string {
	switch f {
	case FormatUUID:
		return languageUUID
	case FormatDateTime:
		return either(over, dateTimeOver, dateTimeUnder)
	case FormatEmail:
		return either(over, emailOver, emailUnder)
	case FormatURI:
		return either(over, uriOver, uriUnder)
	default:
		return either(over, uriRefOver, uriRefUnder)
	}
}

func either(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// formatSpan returns the lengths that strings of a format can have.
func formatSpan(f Format) span {
	switch f {
	case FormatUUID:
		return span{36, 36}
	case FormatEmail:
		return span{3, maxLocalPart + 1 + maxDomain}
	case FormatDateTime:
		return span{20, unbounded}
	case FormatURI:
		return span{2, unbounded}
	default:
		return span{0, unbounded}
	}
}

// formatsClash reports whether a format is required and ruled out at once.
func (st *state) formatsClash() bool {
	for _, a := range st.texts {
		for _, b := range st.texts {
			if a.op == opFormat && b.op == opNoFormat && (a.format == b.format ||
				a.format == FormatURI && b.format == FormatURIReference) {
				return true
			}
		}
	}
	return false
}

// formatSamples are strings of a format that read well.
func formatSamples(f Format) []string {
	switch f {
	case FormatUUID:
		return []string{"0190a6e8-7c31-7d4a-9b2e-5f3c8a1d6e40", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}
	case FormatEmail:
		return []string{"user@example.com", "a@b"}
	case FormatURI:
		return []string{"https://example.com/", "a:"}
	case FormatURIReference:
		return []string{"/path", "https://example.com/", ""}
	default:
		return []string{"2026-01-15T09:30:00Z"}
	}
}
