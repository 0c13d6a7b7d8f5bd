package envelope

import "github.com/agentd/agentd/internal/ijson"

// The strings of an auth that usual reads.
const (
	proofKeyID = iota
	proofSignature
	proofFields
)

// usual reads a message that is spelled as [Envelope.Encode] spells it: the keys in
// their order, no white space around them, no escapes in strings. It returns false for
// every other message, good or bad, of which [decodeAny] has to judge: what it accepts
// is accepted there, as the same message. It looks for one key at a time, at one place,
// where a message of any spelling takes a search.
func (d *decoder) usual() bool {
	return d.literal(`{"version":1,"kind":"`) && d.usualKind() &&
		d.required(fieldMessageID, `,"messageId":"`) &&
		d.required(fieldCorrelationID, `,"correlationId":"`) &&
		d.optional(fieldCausedBy, `,"causedBy":"`) &&
		d.required(fieldFrom, `,"from":"`) &&
		d.required(fieldTo, `,"to":"`) &&
		d.required(fieldCapability, `,"capability":"`) &&
		d.optional(fieldReplyTo, `,"replyTo":"`) &&
		d.usualDeadline() &&
		d.optional(fieldTenantID, `,"tenantId":"`) &&
		d.usualHeaders() && d.usualPayload() && d.usualAuth() &&
		d.literal(`}`) && d.at == len(d.data)
}

// literal passes over text if it stands here.
func (d *decoder) literal(text string) bool {
	end := d.at + len(text)
	if end > len(d.data) || string(d.data[d.at:end]) != text {
		return false
	}
	d.at = end
	return true
}

// plain passes over the rest of a string, behind its first quote.
func (d *decoder) plain(s *span) bool {
	end := ijson.PlainEnd(d.data, d.at)
	if end < 0 {
		return false
	}
	s.start, s.end = d.at, end
	d.at = end + 1
	return true
}

// required reads a member, of which before is all up to its value. The value is not
// empty.
func (d *decoder) required(f field, before string) bool {
	s := &d.strings[f]
	return d.literal(before) && d.plain(s) && s.end > s.start
}

// optional is required for a member that may be missing.
func (d *decoder) optional(f field, before string) bool {
	s := &d.strings[f]
	return !d.literal(before) || d.plain(s) && s.end > s.start
}

func (d *decoder) usualKind() bool {
	switch {
	case d.literal(`request"`):
		d.kind = Request
	case d.literal(`response"`):
		d.kind = Response
	case d.literal(`event"`):
		d.kind = Event
	default:
		return false
	}
	return true
}

func (d *decoder) usualDeadline() bool {
	if !d.literal(`,"deadline":`) {
		return true
	}
	if d.at >= len(d.data) || d.data[d.at]-'1' >= 9 {
		return false
	}
	end, _, err := ijson.ScanNumber(d.data, d.at)
	if err != nil {
		return false
	}
	d.readDeadline(d.data[d.at:end])
	d.at = end
	return len(d.faults) == 0
}

func (d *decoder) usualHeaders() bool {
	if !d.literal(`,"headers":{"`) {
		return true
	}
	for {
		var key, value span
		if !d.plain(&key) || !d.literal(`:"`) || !d.plain(&value) {
			return false
		}
		d.headers.add(key, value)
		if !d.literal(`,"`) {
			return d.literal(`}`) && d.headers.distinct(d.data)
		}
	}
}

func (d *decoder) usualPayload() bool {
	if !d.literal(`,"payload":`) {
		return true
	}
	// White space is no part of the payload, and Skip passes over it.
	if d.at >= len(d.data) || d.data[d.at] <= ' ' {
		return false
	}
	end, err := ijson.Skip(d.data, d.at, MaxDepth-1)
	if err != nil {
		return false
	}
	d.payload = d.data[d.at:end]
	d.at = end
	return true
}

// usualAuth reads the two kinds that agentd sends.
func (d *decoder) usualAuth() bool {
	switch {
	case !d.literal(`,"auth":{"kind":"`):
		return true
	case d.literal(`internal"}`):
		d.auth.Kind = AuthInternal
		return true
	case !d.literal(`hmac","keyId":"`):
		return false
	}
	d.auth.Kind = AuthHMAC
	id, signature := &d.proof[proofKeyID], &d.proof[proofSignature]
	return d.plain(id) && id.end > id.start && d.literal(`,"signature":"`) && d.plain(signature) && signature.end > signature.start && d.literal(`}`)
}
