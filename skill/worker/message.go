package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/internal/wire"
)

// number returns an id as the number that agentd has given to a request.
func number(id json.RawMessage) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(id), 10, 64)
	return n, err == nil
}

// strictly decodes a value of which the protocol says what it is.
func strictly(data json.RawMessage, into any) error {
	if data == nil || ijson.IsAbsent(data) {
		return errors.New("it is missing")
	}
	return json.Unmarshal(data, into)
}

// begin begins a message, and end ends it as a line.
func begin(dst []byte) []byte { return append(dst, `{"jsonrpc":"2.0",`...) }
func end(dst []byte) []byte   { return append(dst, '}', '\n') }

// appendRequest appends a request; without an id it is a notification.
func appendRequest(dst []byte, id uint64, method string, params any) []byte {
	dst = begin(dst)
	if id != 0 {
		dst = append(strconv.AppendUint(append(dst, `"id":`...), id, 10), ',')
	}
	dst = append(append(append(dst, `"method":"`...), method...), '"')
	if params != nil {
		dst = append(append(dst, `,"params":`...), encode(params)...)
	}
	return end(dst)
}

// appendResult and appendError append a response.
func appendResult(dst []byte, id, result json.RawMessage) []byte {
	dst = append(append(append(begin(dst), `"id":`...), id...), `,"result":`...)
	return end(appendCompact(dst, result))
}

func appendError(dst []byte, id json.RawMessage, code int, text string) []byte {
	dst = append(append(append(begin(dst), `"id":`...), id...), `,"error":`...)
	return end(append(dst, encode(&wire.Error{Code: code, Message: text})...))
}

// encode is json.Marshal, without HTML escapes, of values that can be encoded.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // only values of package wire, whose raw parts have been checked
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// appendCompact appends JSON without line breaks, which would end the message.
func appendCompact(dst []byte, value json.RawMessage) []byte {
	if ijson.IsAbsent(value) {
		return append(dst, "null"...)
	}
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(dst, value...)
	}
	var b bytes.Buffer
	_ = json.Compact(&b, value) // it has been checked
	return append(dst, b.Bytes()...)
}

// appendInvoke appends a call, with what a skill may know of it.
func appendInvoke(dst []byte, id uint64, inv *rpc.Invocation, token string) []byte {
	dst = strconv.AppendUint(append(begin(dst), `"id":`...), id, 10)
	dst = append(dst, `,"method":"invoke","params":{"capability":`...)
	dst = ijson.AppendQuoted(dst, inv.Capability)
	for _, member := range [...]struct{ name, value string }{
		{`,"caller":`, string(inv.From)}, {`,"correlationId":`, inv.CorrelationID}, {`,"messageId":`, inv.MessageID},
		{`,"sessionId":`, inv.SessionID}, {`,"tenantId":`, inv.TenantID}, {`,"idempotencyKey":`, inv.IdempotencyKey},
		{`,"traceparent":`, inv.Traceparent}, {`,"tracestate":`, inv.Tracestate}, {`,"token":`, token},
	} {
		if member.value != "" {
			dst = ijson.AppendQuoted(append(dst, member.name...), member.value)
		}
	}
	for _, member := range [...]struct {
		name string
		set  bool
	}{{`,"callerProven":true`, inv.Proven}, {`,"event":true`, inv.Event}, {`,"progress":true`, inv.WantsProgress()}} {
		if member.set {
			dst = append(dst, member.name...)
		}
	}
	dst = strconv.AppendInt(append(dst, `,"hops":`...), int64(max(inv.Hops, 1)), 10)
	if !inv.Deadline.IsZero() {
		dst = strconv.AppendInt(append(dst, `,"deadlineMs":`...), inv.Deadline.UnixMilli(), 10)
	}
	dst = appendCompact(append(dst, `,"payload":`...), inv.Payload)
	return end(append(dst, '}'))
}
