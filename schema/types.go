package schema

// Type is a name that the keyword type accepts.
type Type string

// The types of draft-07.
const (
	TypeNull    Type = "null"
	TypeBoolean Type = "boolean"
	TypeInteger Type = "integer" // any number without fraction, 1.0 included
	TypeNumber  Type = "number"
	TypeString  Type = "string"
	TypeArray   Type = "array"
	TypeObject  Type = "object"
)

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
