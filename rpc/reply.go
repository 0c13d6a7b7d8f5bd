package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/ijson"
)

// The payload of a response is {"ok":true,"data":…} or {"ok":false,"error":{…}}.

// A reply is the payload of a response, in pieces: an answer is not copied
// before it is part of the message.
type reply struct {
	before string
	value  json.RawMessage
	after  string
}

// What stands around an answer.
const (
	beforeAnswer = `{"ok":true,"data":`
	afterAnswer  = `}`
)

// okReply wraps data, one JSON value, without reading it.
func okReply(data json.RawMessage) reply {
	return reply{before: beforeAnswer, value: data, after: afterAnswer}
}

// bareAnswer takes an answer out of the payload that okReply makes of it, without
// reading it: it is the answer if it is one JSON value, and otherwise
// [parseReply] decides.
func bareAnswer(payload []byte) (data json.RawMessage, ok bool) {
	rest, ok := bytes.CutPrefix(payload, []byte(beforeAnswer))
	if !ok {
		return nil, false
	}
	rest, ok = bytes.CutSuffix(rest, []byte(afterAnswer))
	return bytes.Trim(rest, " \t\r\n"), ok
}

// whole is the payload in one piece.
func (r reply) whole() json.RawMessage {
	out := make([]byte, 0, len(r.before)+len(r.value)+len(r.after))
	return append(append(append(out, r.before...), r.value...), r.after...)
}

// errorReply wraps err. A side and violations travel inside the error.
func errorReply(err *Error) reply {
	out, merr := marshal(struct {
		OK    bool      `json:"ok"`
		Error wireError `json:"error"`
	}{Error: err.wire()})
	if merr != nil { // Details was not JSON: the reply matters more
		bare := err.wire()
		bare.Details = nil
		return errorReply(bare.error())
	}
	return reply{value: out}
}

// maxRemoteText bounds the text that a peer can put into our results and logs.
const maxRemoteText = 2048

// maxRemoteViolations bounds a peer's list of violations.
const maxRemoteViolations = 1000

// parseReply splits a response's payload. Exactly one of data and err is set.
// Members that it does not know are passed over: a later version may add some.
func parseReply(payload []byte) (data json.RawMessage, err *Error) {
	ok, data, rawError, perr := splitReply(payload)
	if perr != nil {
		return nil, newError(CodeInvalidEnvelope, perr, "the peer's reply is not {ok, data} or {ok, error}: %s", perr)
	}
	if ok {
		return data, nil
	}
	var w wireError
	if uerr := json.Unmarshal(rawError, &w); uerr != nil || w.Code == "" {
		return nil, newError(CodeInvalidEnvelope, uerr, "the peer's reply says that the call failed, and not how")
	}
	e := w.error()
	e.Message = cut(e.Message, maxRemoteText)
	e.RemoteCode = cut(e.RemoteCode, 128)
	if len(e.Violations) > maxRemoteViolations {
		e.Violations = e.Violations[:maxRemoteViolations]
	}
	if len(e.Details) > maxRemoteText {
		e.Details = nil
	}
	if e.Code != CodeRemote && e.Code != CodeHandlerError {
		// Older peers do not say it; for our own codes we know.
		e.Retryable = e.Retryable || e.Code.Retryable()
	}
	return nil, e
}

// splitReply finds the members in one pass, without copying data.
func splitReply(payload []byte) (ok bool, data, rawError json.RawMessage, err error) {
	i := ijson.SkipSpace(payload, 0)
	if i >= len(payload) || payload[i] != '{' {
		return false, nil, nil, fmt.Errorf("not an object")
	}
	data, rawError = json.RawMessage("null"), json.RawMessage("null")
	saidOK := false
	for i = ijson.SkipSpace(payload, i+1); i < len(payload) && payload[i] != '}'; {
		keyEnd, escaped, err := ijson.ScanString(payload, i)
		if err != nil {
			return false, nil, nil, err
		}
		key := payload[i+1 : keyEnd-1]
		if escaped {
			key = ijson.AppendUnquoted(nil, key)
		}
		start := ijson.SkipSpace(payload, ijson.SkipSpace(payload, keyEnd)+1) // past the colon
		end, err := ijson.Skip(payload, start, envelopeDepth)
		if err != nil {
			return false, nil, nil, err
		}
		value := payload[start:end]
		switch string(key) {
		case "ok":
			saidOK, ok = true, string(value) == "true"
		case "data":
			data = value
		case "error":
			rawError = value
		}
		if i = ijson.SkipSpace(payload, end); i < len(payload) && payload[i] == ',' {
			i = ijson.SkipSpace(payload, i+1)
		}
	}
	if !saidOK {
		return false, nil, nil, fmt.Errorf("`ok` is missing")
	}
	return ok, data, rawError, nil
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
