package envelope

import (
	"encoding/json"
	"strings"
)

// maxClaimBytes bounds each text that [Claims] takes from a message.
const maxClaimBytes = 256

// Claims reads what it can of a message that [Decode] refuses, so that its sender can
// be told and the refusal recorded: the members that version 1 has and that are of
// their type, without a payload, headers other than the trace context, and any proof.
// A text that is too long, or contains a control character, is left out. version is
// the message's, or 0 if that is no whole number. Nothing of it is to be trusted.
func Claims(data []byte) (e *Envelope, version int64) {
	e = &Envelope{Kind: Request}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return e, 0
	}
	var headers map[string]json.RawMessage
	_ = json.Unmarshal(members["headers"], &headers) // none where it is no object
	if kind := Kind(claim(members["kind"])); validKind(kind) {
		e.Kind = kind
	}
	e.MessageID, e.CorrelationID = claim(members["messageId"]), claim(members["correlationId"])
	e.Capability, e.TenantID = claim(members["capability"]), claim(members["tenantId"])
	if from, err := ParseAddress(claim(members["from"])); err == nil {
		e.From = from
	}
	if to, err := ParseAddress(claim(members["to"])); err == nil {
		e.To = to
	}
	if reply := claim(members["replyTo"]); validReplyTo(reply) {
		e.ReplyTo = reply
	}
	if trace := claim(headers[HeaderTraceparent]); trace != "" {
		e.Headers = Headers{{Key: HeaderTraceparent, Value: trace}}
	}
	if json.Unmarshal(members["version"], &version) != nil {
		return e, 0
	}
	return e, version
}

// claim returns the text of a JSON string, or "".
func claim(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil || len(text) > maxClaimBytes {
		return ""
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return ""
	}
	return text
}
