package schema

// Format is a name that the keyword format accepts. Formats are asserted, on
// strings only.
type Format string

// The formats of the subset.
const (
	FormatUUID         Format = "uuid"          // RFC 9562
	FormatEmail        Format = "email"         // RFC 5321 section 4.1.2, addr-spec
	FormatURI          Format = "uri"           // RFC 3986, with a scheme
	FormatURIReference Format = "uri-reference" // RFC 3986
	FormatDateTime     Format = "date-time"     // RFC 3339
)

// formatNames lists the formats, in the order in which hints name them.
func formatNames() []string { return []string{"uuid", "email", "uri", "uri-reference", "date-time"} }

// match reports whether the characters of a string have the format, in one pass
// over them. The prover's languages in prove_format.go must accept the same.
func (f Format) match(text []byte) bool {
	switch f {
	case FormatUUID:
		return isUUID(text)
	case FormatEmail:
		return isEmail(text)
	case FormatURI:
		return isURI(text, true)
	case FormatURIReference:
		return isURI(text, false)
	case FormatDateTime:
		return isDateTime(text)
	}
	return true
}

// complaint is the end of the message for a string that lacks the format.
func (f Format) complaint() string {
	switch f {
	case FormatUUID:
		return "not a UUID"
	case FormatEmail:
		return "not an email"
	case FormatURI:
		return "not a URI"
	case FormatURIReference:
		return "not a URI reference"
	case FormatDateTime:
		return "not an RFC-3339 date-time"
	}
	return "unknown"
}
