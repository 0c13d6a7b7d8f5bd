package envelope

// A field is one key that version 1 defines. String fields come first: their
// values index the decoder's spans.
type field uint8

const (
	fieldMessageID field = iota
	fieldCorrelationID
	fieldCausedBy
	fieldFrom
	fieldTo
	fieldCapability
	fieldReplyTo
	fieldTenantID
	stringFields // the fields above hold strings
)

const (
	fieldVersion = stringFields + iota
	fieldKind
	fieldDeadline
	fieldHeaders
	fieldPayload
	fieldAuth
	fieldCount
	fieldUnknown
)

// field returns the field of a key. The switch compares without converting the
// bytes to a string on the heap.
func (d *decoder) field(key span) field {
	switch string(d.raw(key)) {
	case "version":
		return fieldVersion
	case "kind":
		return fieldKind
	case "messageId":
		return fieldMessageID
	case "correlationId":
		return fieldCorrelationID
	case "causedBy":
		return fieldCausedBy
	case "from":
		return fieldFrom
	case "to":
		return fieldTo
	case "capability":
		return fieldCapability
	case "replyTo":
		return fieldReplyTo
	case "deadline":
		return fieldDeadline
	case "tenantId":
		return fieldTenantID
	case "headers":
		return fieldHeaders
	case "payload":
		return fieldPayload
	case "auth":
		return fieldAuth
	}
	return fieldUnknown
}

// fieldName returns the key of a string field or a required one, for faults.
func fieldName(f field) string {
	switch f {
	case fieldVersion:
		return "version"
	case fieldKind:
		return "kind"
	case fieldMessageID:
		return "messageId"
	case fieldCorrelationID:
		return "correlationId"
	case fieldCausedBy:
		return "causedBy"
	case fieldFrom:
		return "from"
	case fieldTo:
		return "to"
	case fieldCapability:
		return "capability"
	case fieldReplyTo:
		return "replyTo"
	case fieldTenantID:
		return "tenantId"
	}
	return rootPath
}
