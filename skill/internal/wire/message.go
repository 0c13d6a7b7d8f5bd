package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
)

// Bounds on a message.
const (
	// maxDepth bounds the nesting of a message. An answer has a few levels around it.
	maxDepth = 520
	// maxIDBytes bounds the id that a worker gives a request.
	maxIDBytes = 128
)

// A Message is one line of the protocol. It is a request if it has a method and an id, a
// notification with a method alone, and otherwise a response.
type Message struct {
	ID     json.RawMessage // nil if there is none
	Method string
	Params json.RawMessage // nil if there are none
	Result json.RawMessage // of a response that is no error
	Err    json.RawMessage // of a response that is one
}

// IsRequest reports whether a message is one that gets a response.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether a message is one that gets no response.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// Decode reads one line. Its errors hold nothing of the line's own text. Members that the
// protocol does not have are passed over, so that it can gain some.
func Decode(line []byte) (m Message, err error) {
	if err := ijson.Check(line, maxDepth); err != nil {
		return m, err
	}
	if line[ijson.SkipSpace(line, 0)] != '{' {
		return m, errors.New("it is no JSON object")
	}
	var version string
	for name, value := range Members(line) {
		if err := m.set(string(name), value, &version); err != nil {
			return m, err
		}
	}
	return m, m.check(version)
}

// Members are those of an object that has been checked.
func Members(object []byte) iter.Seq2[[]byte, json.RawMessage] {
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

// Member returns a member of a value that has been checked, or nil.
func Member(value json.RawMessage, name string) json.RawMessage {
	if len(value) > 0 && value[0] == '{' {
		for found, of := range Members(value) {
			if string(found) == name {
				return of
			}
		}
	}
	return nil
}

// set sets one member.
func (m *Message) set(name string, value json.RawMessage, version *string) error {
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
		if err := text(&m.Method); err != nil {
			return err
		}
		if m.Method == "" {
			return errors.New("its method is empty")
		}
	case "id":
		m.ID = value
	case "params":
		m.Params = value
	case "result":
		m.Result = value
	case "error":
		m.Err = value
	}
	return nil
}

// check holds a message to the rules of JSON-RPC 2.0.
func (m *Message) check(version string) error {
	switch {
	case version != "2.0":
		return errors.New(`it has no "jsonrpc": "2.0"`)
	case len(m.ID) > maxIDBytes:
		return fmt.Errorf("its id has more than %d bytes", maxIDBytes)
	case m.ID != nil && m.ID[0] != '"' && !isInteger(m.ID) && (m.Method != "" || string(m.ID) != "null"):
		return errors.New("its id is neither a string nor an integer")
	case m.Method != "" && (m.Result != nil || m.Err != nil):
		return errors.New("it is a request and a response")
	case m.Method != "":
		return nil
	case m.ID == nil:
		return errors.New("it has neither a method nor an id")
	case (m.Result != nil) == (m.Err != nil):
		return errors.New("it is a response without exactly one of result and error")
	}
	return nil
}

func isInteger(text []byte) bool {
	_, err := strconv.ParseInt(string(text), 10, 64)
	return err == nil
}

// ReadInvoke reads the parameters of invoke. It is [json.Unmarshal] in a fraction of the time:
// a worker does little else for a short call.
func ReadInvoke(params json.RawMessage) (p InvokeParams, err error) {
	if len(params) == 0 || params[0] != '{' {
		return p, errors.New("the parameters are no object")
	}
	var hops int64
	texts := [...]struct {
		name string
		to   *string
	}{
		{"capability", &p.Capability}, {"caller", &p.Caller}, {"correlationId", &p.CorrelationID}, {"messageId", &p.MessageID}, {"sessionId", &p.SessionID},
		{"tenantId", &p.TenantID}, {"idempotencyKey", &p.IdempotencyKey}, {"traceparent", &p.Traceparent}, {"tracestate", &p.Tracestate}, {"token", &p.Token},
	}
	for name, value := range Members(params) {
		switch string(name) {
		case "payload":
			p.Payload = value
		case "callerProven":
			p.CallerProven = value[0] == 't'
		case "event":
			p.Event = value[0] == 't'
		case "progress":
			p.Progress = value[0] == 't'
		case "hops":
			hops, err = strconv.ParseInt(string(value), 10, 32)
		case "deadlineMs":
			p.DeadlineMs, err = strconv.ParseInt(string(value), 10, 64)
		}
		if err != nil {
			return p, fmt.Errorf("%.32s: %w", name, err)
		}
		for _, text := range texts {
			if text.name == string(name) && value[0] == '"' {
				*text.to = string(ijson.AppendUnquoted(nil, value[1:len(value)-1]))
			}
		}
	}
	p.Hops = int(hops)
	return p, nil
}
