package format

import "slices"

// Name is what the keyword format calls a format.
type Name string

// The formats of the subset.
const (
	UUID         Name = "uuid"          // RFC 9562
	Email        Name = "email"         // RFC 5321 section 4.1.2, addr-spec
	URI          Name = "uri"           // RFC 3986, with a scheme
	URIReference Name = "uri-reference" // RFC 3986
	DateTime     Name = "date-time"     // RFC 3339
)

// Names lists the formats, in the order in which hints name them.
func Names() []string { return []string{"uuid", "email", "uri", "uri-reference", "date-time"} }

// Match reports whether the characters of a string have the format, in one pass
// over them. The languages in language.go must accept the same.
func (f Name) Match(text []byte) bool {
	switch f {
	case UUID:
		return isUUID(text)
	case Email:
		return isEmail(text)
	case URI:
		return isURI(text, true)
	case URIReference:
		return isURI(text, false)
	case DateTime:
		return isDateTime(text)
	}
	return f.matchFull(text)
}

// Complaint is the end of the message for a string that lacks the format.
func (f Name) Complaint() string {
	switch f {
	case UUID:
		return "not a UUID"
	case Email:
		return "not an email"
	case URI:
		return "not a URI"
	case URIReference:
		return "not a URI reference"
	case DateTime:
		return "not an RFC-3339 date-time"
	}
	return "not of this format"
}

// Known reports whether strings can be judged by a format. Those that the subset lacks
// are in full.go.
func Known(f Name) bool { return slices.Contains(Names(), string(f)) || isFull(f) }
