package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// The payload of a response is {"ok":true,"data":…} or {"ok":false,"error":{…}}.

// A Reply is the payload of a response in pieces, so that an answer is copied only
// once: into the message.
type Reply struct {
	Before string
	Value  json.RawMessage
	After  string
}

// The text around an answer.
const (
	beforeAnswer = `{"ok":true,"data":`
	afterAnswer  = `}`
)

// Answer returns the reply with data, one JSON value. It does not read data.
func Answer(data json.RawMessage) Reply {
	return Reply{Before: beforeAnswer, Value: data, After: afterAnswer}
}

// BareAnswer cuts the answer out of a payload of the form that [Answer] writes,
// without parsing it. Only if the caller then finds that data is one JSON value is
// it the answer: a payload such as {"ok":true,"data":1,"ok":false} matches by its
// ends too. Otherwise [ParseReply] decides.
func BareAnswer(payload []byte) (data json.RawMessage, ok bool) {
	rest, ok := bytes.CutPrefix(payload, []byte(beforeAnswer))
	if !ok {
		return nil, false
	}
	rest, ok = bytes.CutSuffix(rest, []byte(afterAnswer))
	return bytes.Trim(rest, " \t\r\n"), ok
}

// Bytes returns the payload in one piece.
func (r Reply) Bytes() json.RawMessage {
	out := make([]byte, 0, len(r.Before)+len(r.Value)+len(r.After))
	return append(append(append(out, r.Before...), r.Value...), r.After...)
}

// failure is an rpc.Error on the wire, where side and violations are part of it.
type failure struct {
	Code       string             `json:"code"`
	Message    string             `json:"message"`
	Retryable  bool               `json:"retryable"`
	DetectedBy envelope.Address   `json:"detectedBy,omitempty"`
	SchemaSide rpc.Side           `json:"schemaSide,omitempty"`
	Violations []schema.Violation `json:"violations,omitempty"`
	Omitted    int                `json:"violationsOmitted,omitempty"`
	Details    json.RawMessage    `json:"details,omitempty"`
	// RetryAfterMs is rounded up.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
}

// Failure returns the reply with err.
func Failure(err *rpc.Error) Reply {
	f := failure{
		Code: err.CodeText(), Message: err.Message, Retryable: err.Retryable, DetectedBy: err.DetectedBy,
		SchemaSide: err.Side, Violations: err.Violations, Omitted: err.ViolationsOmitted, Details: err.Details,
		RetryAfterMs: int64((err.RetryIn + time.Millisecond - 1) / time.Millisecond),
	}
	out, merr := marshalFailure(f)
	if merr != nil { // Details is not JSON: send the rest, the reply matters more
		f.Details = nil
		out, _ = marshalFailure(f) // strings and numbers always marshal
	}
	return Reply{Value: out}
}

func marshalFailure(f failure) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		OK    bool    `json:"ok"`
		Error failure `json:"error"`
	}{Error: f})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// maxRemoteViolations bounds the violations taken from a peer.
const maxRemoteViolations = 1000

// ParseReply splits the payload of a response into its answer or its error; exactly
// one of them is set. It ignores members that it does not know, which a later
// version may add, and bounds what a peer can put into our results and logs.
func ParseReply(payload []byte) (data json.RawMessage, err *rpc.Error) {
	ok, data, rawError, perr := splitReply(payload)
	if perr != nil {
		return nil, rpc.NewError(rpc.CodeInvalidEnvelope, perr, "the peer's reply is not {ok, data} or {ok, error}: %s", perr)
	}
	if ok {
		return data, nil
	}
	var f failure
	var text string
	switch {
	// Skills of the reference system may fail with a text alone.
	case json.Unmarshal(rawError, &text) == nil && text != "":
		return nil, rpc.NewError(rpc.CodeHandlerError, nil, "%s", truncate.String(text, MaxText))
	case json.Unmarshal(rawError, &f) != nil || f.Code == "" && f.Message == "":
		return nil, rpc.NewError(rpc.CodeInvalidEnvelope, nil, "the peer's reply reports a failure without a code")
	case f.Code == "":
		return nil, rpc.NewError(rpc.CodeInvalidEnvelope, nil, "the peer's reply reports a failure without a code: %s", truncate.String(f.Message, MaxText))
	}
	e := &rpc.Error{
		Message: f.Message, Retryable: f.Retryable, DetectedBy: f.DetectedBy,
		Side: f.SchemaSide, Violations: f.Violations, ViolationsOmitted: min(max(f.Omitted, 0), schema.MaxOmitted), Details: f.Details,
		RetryIn: time.Duration(min(max(f.RetryAfterMs, 0), rpc.MaxTimeout.Milliseconds())) * time.Millisecond,
	}
	e.SetCodeText(f.Code)
	e.Message = truncate.String(e.Message, MaxText)
	e.RemoteCode = truncate.String(e.RemoteCode, MaxName)
	if more := len(e.Violations) - maxRemoteViolations; more > 0 {
		e.Violations = e.Violations[:maxRemoteViolations]
		e.ViolationsOmitted = min(e.ViolationsOmitted+more, schema.MaxOmitted)
	}
	if len(e.Details) > MaxText {
		e.Details = nil
	}
	if e.Code != rpc.CodeRemote && e.Code != rpc.CodeHandlerError {
		// Peers of the reference system leave it out; for our own codes it is known.
		e.Retryable = e.Retryable || e.Code.Retryable()
	}
	return nil, e
}

// splitReply finds the members in one pass without copying them.
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
		end, err := ijson.Skip(payload, start, MaxDepth)
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
