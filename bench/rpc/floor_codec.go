package main

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
)

// A message is what the floor knows of an envelope. Its fields alias the bytes that they
// were decoded from.
type message struct {
	kind                        string
	messageID, correlationID    []byte
	causedBy, from, to          []byte
	capability, replyTo         []byte
	deadline                    int64
	headers                     [8][2][]byte
	headerCount                 int
	payloadBefore, payloadAfter string
	payload                     []byte
}

// appendMessage writes the message in the form of package envelope. The texts need no
// escapes: the floor makes them itself.
func appendMessage(dst []byte, m *message) []byte {
	dst = append(append(dst, `{"version":1,"kind":"`...), m.kind...)
	dst = append(append(dst, `","messageId":"`...), m.messageID...)
	dst = append(append(dst, `","correlationId":"`...), m.correlationID...)
	if len(m.causedBy) > 0 {
		dst = append(append(dst, `","causedBy":"`...), m.causedBy...)
	}
	dst = append(append(dst, `","from":"`...), m.from...)
	dst = append(append(dst, `","to":"`...), m.to...)
	dst = append(append(dst, `","capability":"`...), m.capability...)
	if len(m.replyTo) > 0 {
		dst = append(append(dst, `","replyTo":"`...), m.replyTo...)
	}
	dst = append(dst, '"')
	if m.deadline != 0 {
		dst = strconv.AppendInt(append(dst, `,"deadline":`...), m.deadline, 10)
	}
	dst = append(dst, `,"headers":{`...)
	for i, h := range m.headers[:m.headerCount] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(append(append(dst, '"'), h[0]...), `":"`...), h[1]...), '"')
	}
	dst = append(append(append(dst, `},"payload":`...), m.payloadBefore...), m.payload...)
	return append(append(dst, m.payloadAfter...), '}')
}

var errMessage = errors.New("no message of version 1")

// decodeMessage reads one message strictly: no key twice, none that version 1 does not
// have, texts in valid UTF-8, nothing behind the end. Of the payload it finds the end
// only: whoever validates it finds out whether it is one value of I-JSON.
func decodeMessage(data []byte, m *message) error {
	const (
		required = 1<<iVersion | 1<<iKind | 1<<iMessageID | 1<<iCorrelationID | 1<<iFrom | 1<<iTo | 1<<iCapability
	)
	i, empty := ijson.Enter(data, ijson.SkipSpace(data, 0))
	if len(data) == 0 || data[0] != '{' || empty {
		return errMessage
	}
	seen := 0
	for more := true; more; {
		end, escaped, value, err := ijson.ScanName(data, i)
		if err != nil || escaped {
			return errMessage
		}
		key := keyOf(data[i+1 : end-1])
		if key == iUnknown || seen&(1<<key) != 0 {
			return errMessage
		}
		seen |= 1 << key
		if i, err = m.member(data, value, key); err != nil {
			return err
		}
		if i, more, err = ijson.Next(data, i, '}'); err != nil {
			return err
		}
	}
	if seen&required != required || ijson.End(data, i) != nil {
		return errMessage
	}
	return nil
}

// The keys of version 1 that the floor's messages have.
const (
	iVersion = iota
	iKind
	iMessageID
	iCorrelationID
	iCausedBy
	iFrom
	iTo
	iCapability
	iReplyTo
	iDeadline
	iHeaders
	iPayload
	iUnknown
)

func keyOf(key []byte) int {
	switch string(key) {
	case "version":
		return iVersion
	case "kind":
		return iKind
	case "messageId":
		return iMessageID
	case "correlationId":
		return iCorrelationID
	case "causedBy":
		return iCausedBy
	case "from":
		return iFrom
	case "to":
		return iTo
	case "capability":
		return iCapability
	case "replyTo":
		return iReplyTo
	case "deadline":
		return iDeadline
	case "headers":
		return iHeaders
	case "payload":
		return iPayload
	}
	return iUnknown
}

// member reads the value of a key at i, and returns where it ends.
func (m *message) member(data []byte, i, key int) (int, error) {
	switch key {
	case iVersion:
		end, _, err := ijson.ScanNumber(data, i)
		if err == nil && string(data[i:end]) != "1" {
			err = errMessage
		}
		return end, err
	case iDeadline:
		end, integer, err := ijson.ScanNumber(data, i)
		if err != nil || !integer {
			return 0, errMessage
		}
		m.deadline, err = strconv.ParseInt(string(data[i:end]), 10, 64)
		return end, err
	case iHeaders:
		return m.readHeaders(data, i)
	case iPayload:
		end := skipValue(data, i)
		m.payload = data[i:end]
		return end, nil
	}
	text, end, err := text(data, i)
	if err != nil {
		return 0, err
	}
	switch key {
	case iKind:
		switch string(text) {
		case "request":
			m.kind = "request"
		case "response":
			m.kind = "response"
		default:
			return 0, errMessage
		}
	case iMessageID:
		m.messageID = text
	case iCorrelationID:
		m.correlationID = text
	case iCausedBy:
		m.causedBy = text
	case iFrom, iTo:
		if !bytes.HasPrefix(text, []byte("agent://")) {
			return 0, errMessage
		}
		if key == iFrom {
			m.from = text
		} else {
			m.to = text
		}
	case iCapability:
		m.capability = text
	case iReplyTo:
		m.replyTo = text
	}
	return end, nil
}

// text reads a string without escapes.
func text(data []byte, i int) ([]byte, int, error) {
	end, escaped, err := ijson.ScanString(data, i)
	if err != nil || escaped {
		return nil, 0, errMessage
	}
	return data[i+1 : end-1], end, nil
}

func (m *message) readHeaders(data []byte, i int) (int, error) {
	if i >= len(data) || data[i] != '{' {
		return 0, errMessage
	}
	i, empty := ijson.Enter(data, i)
	for more := !empty; more; {
		end, escaped, value, err := ijson.ScanName(data, i)
		if err != nil || escaped || m.headerCount == len(m.headers) {
			return 0, errMessage
		}
		key := data[i+1 : end-1]
		for _, other := range m.headers[:m.headerCount] {
			if bytes.Equal(other[0], key) {
				return 0, errMessage
			}
		}
		content, end, err := text(data, value)
		if err != nil {
			return 0, err
		}
		m.headers[m.headerCount] = [2][]byte{key, content}
		m.headerCount++
		if i, more, err = ijson.Next(data, end, '}'); err != nil {
			return 0, err
		}
	}
	return i, nil
}

// skipValue returns the end of the JSON value at i, if it is one.
func skipValue(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = skipString(data, i+1)
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(data))
		}
	}
	return len(data)
}

// skipString returns the offset of the quote that ends the string whose content begins at i.
func skipString(data []byte, i int) int {
	if end := ijson.PlainEnd(data, i); end >= 0 {
		return end
	}
	for ; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}
