package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/internal/wire"
)

// Bounds on a message.
const (
	// maxDepth bounds the nesting of a message. An answer has a few levels around it.
	maxDepth = 520
	// maxIDBytes bounds the id that a worker gives a request.
	maxIDBytes = 128
)

// A message is one line of the protocol. It is a request if it has a method and an id, a
// notification with a method alone, and otherwise a response.
type message struct {
	id     json.RawMessage // nil if there is none
	method string
	params json.RawMessage // nil if there are none
	result json.RawMessage // of a response that is no error
	err    json.RawMessage // of a response that is one
}

func (m *message) isRequest() bool      { return m.method != "" && m.id != nil }
func (m *message) isNotification() bool { return m.method != "" && m.id == nil }

// decode reads one line. Its errors hold nothing of the line's own text. Members that the
// protocol does not have are passed over, so that it can gain some.
func decode(line []byte) (m message, err error) {
	if err := ijson.Check(line, maxDepth); err != nil {
		return m, err
	}
	if line[ijson.SkipSpace(line, 0)] != '{' {
		return m, errors.New("it is no JSON object")
	}
	var version string
	for name, value := range members(line) {
		if err := m.set(string(name), value, &version); err != nil {
			return m, err
		}
	}
	return m, m.check(version)
}

// members are those of an object that has been checked.
func members(object []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		i, empty := ijson.Enter(object, ijson.SkipSpace(object, 0))
		for more := !empty; more; {
			end, escaped, value, _ := ijson.ScanName(object, i) // as it has been checked
			name := object[i+1 : end-1]
			if escaped {
				name = ijson.AppendUnquoted(nil, name)
			}
			after := ijson.SkipValid(object, value)
			if !yield(name, object[value:after:after]) {
				return
			}
			i, more, _ = ijson.Next(object, after, '}')
		}
	}
}

// member returns a member of a value that has been checked, or nil.
func member(value json.RawMessage, name string) json.RawMessage {
	if len(value) > 0 && value[0] == '{' {
		for found, of := range members(value) {
			if string(found) == name {
				return of
			}
		}
	}
	return nil
}

// set sets one member.
func (m *message) set(name string, value json.RawMessage, version *string) error {
	text := func(into *string) error {
		if value[0] != '"' {
			return fmt.Errorf("its member %s is no string", name)
		}
		*into = string(ijson.AppendUnquoted(nil, value[1:len(value)-1]))
		return nil
	}
	switch name {
	case "jsonrpc":
		return text(version)
	case "method":
		if err := text(&m.method); err != nil {
			return err
		}
		if m.method == "" {
			return errors.New("its method is empty")
		}
	case "id":
		m.id = value
	case "params":
		m.params = value
	case "result":
		m.result = value
	case "error":
		m.err = value
	}
	return nil
}

// check holds a message to the rules of JSON-RPC 2.0.
func (m *message) check(version string) error {
	switch {
	case version != "2.0":
		return errors.New(`it has no "jsonrpc": "2.0"`)
	case len(m.id) > maxIDBytes:
		return fmt.Errorf("its id has more than %d bytes", maxIDBytes)
	case m.id != nil && m.id[0] != '"' && !isInteger(m.id) && (m.method != "" || string(m.id) != "null"):
		return errors.New("its id is neither a string nor an integer")
	case m.method != "" && (m.result != nil || m.err != nil):
		return errors.New("it is a request and a response")
	case m.method != "":
		return nil
	case m.id == nil:
		return errors.New("it has neither a method nor an id")
	case (m.result != nil) == (m.err != nil):
		return errors.New("it is a response without exactly one of result and error")
	}
	return nil
}

func isInteger(text []byte) bool {
	_, err := strconv.ParseInt(string(text), 10, 64)
	return err == nil
}

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
		{`,"traceparent":`, inv.Traceparent}, {`,"token":`, token},
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

// CheckMessage reports why a line is no message of the protocol, or nil.
func CheckMessage(line []byte) error {
	_, err := decode(line)
	return err
}
