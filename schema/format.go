package schema

// formatName is what the keyword format calls a format.
type formatName string

// The formats of the subset.
const (
	nameUUID         formatName = "uuid"          // RFC 9562
	nameEmail        formatName = "email"         // RFC 5321 section 4.1.2, addr-spec
	nameURI          formatName = "uri"           // RFC 3986, with a scheme
	nameURIReference formatName = "uri-reference" // RFC 3986
	nameDateTime     formatName = "date-time"     // RFC 3339
)

// formatNames lists the formats, in the order in which hints name them.
func formatNames() []string { return []string{"uuid", "email", "uri", "uri-reference", "date-time"} }

// match reports whether the characters of a string have the format, in one pass
// over them. The prover's languages in prove_format.go must accept the same.
func (f formatName) match(text []byte) bool {
	switch f {
	case nameUUID:
		return isUUID(text)
	case nameEmail:
		return isEmail(text)
	case nameURI:
		return isURI(text, true)
	case nameURIReference:
		return isURI(text, false)
	case nameDateTime:
		return isDateTime(text)
	}
	return true
}

// complaint is the end of the message for a string that lacks the format.
func (f formatName) complaint() string {
	switch f {
	case nameUUID:
		return "not a UUID"
	case nameEmail:
		return "not an email"
	case nameURI:
		return "not a URI"
	case nameURIReference:
		return "not a URI reference"
	case nameDateTime:
		return "not an RFC-3339 date-time"
	}
	return "unknown"
}
