package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// FuzzBareAnswer: an answer that is cut out of a reply and turns out to be one value
// is the one that parsing finds.
func FuzzBareAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"ok":true,"data":{"a":[1,"}"]}}`, `{"ok":true,"data":null}`, `{"ok":true,"data":1,"later":{}}`, `{"ok":true,"data":}`,
		`{"ok":true,"data":1}}`, `{"ok":true,"data": 1 }`, `{"ok":true,"data":1,"ok":false,"error":{"code":"X"}}`, `{"ok":true,"data":"`, `{"ok":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		bare, ok := BareAnswer(payload)
		if ijson.Check(payload, MaxDepth) != nil || !ok || ijson.Check(bare, MaxDepth) != nil {
			return
		}
		read, err := ParseReply(payload)
		if err != nil {
			t.Fatalf("%s: %v", payload, err)
		}
		if string(bare) != string(read) {
			t.Errorf("%s: cut out %s, parsed %s", payload, bare, read)
		}
	})
}

// A reply reads back as what it was made of.
func TestReplyRoundTrip(t *testing.T) {
	for _, data := range []string{`null`, `{"a":[1,"}"]}`, `" "`, `1e400`} {
		payload := Answer(json.RawMessage(data)).Bytes()
		read, err := ParseReply(payload)
		if err != nil || string(read) != data {
			t.Errorf("%s reads back as %s, %v", data, read, err)
		}
		if bare, ok := BareAnswer(payload); !ok || string(bare) != data {
			t.Errorf("%s is cut out as %s, %v", data, bare, ok)
		}
	}
	sent := &rpc.Error{
		Code: rpc.CodeSchemaViolation, Message: "a <b> & c", Retryable: true, DetectedBy: "agent://a", Side: rpc.SideResponse,
		Violations: []schema.Violation{{Path: "/x", Message: "no"}}, ViolationsOmitted: 3, Details: json.RawMessage(`{"d":1}`),
		RetryIn: 1500 * time.Millisecond,
	}
	payload := Failure(sent).Bytes()
	if !bytes.Contains(payload, []byte("a <b> & c")) || bytes.HasSuffix(payload, []byte("\n")) {
		t.Errorf("%s", payload)
	}
	data, got := ParseReply(payload)
	if data != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("%s reads back as %+v", payload, got)
	}
	// The message matters more than details that cannot travel.
	sent.Details = json.RawMessage(`{`)
	if _, got = ParseReply(Failure(sent).Bytes()); got.Message != sent.Message || got.Details != nil {
		t.Errorf("without its details the error is %+v", got)
	}
}

// What a peer sends is bounded before it reaches results and logs.
func TestParseReplyBounds(t *testing.T) {
	failure := func(members string) string { return `{"ok":false,"error":{` + members + `}}` }
	violations := func(n int) string {
		return `"code":"EAGENTRPC_SCHEMA_VIOLATION","violations":[` + strings.TrimSuffix(strings.Repeat(`{"path":"","message":"m"},`, n), ",") + `]`
	}
	for _, test := range []struct {
		name, payload string
		holds         func(*rpc.Error) bool
	}{
		{"message", failure(`"code":"HANDLER_ERROR","message":"` + strings.Repeat("x", 2049) + `"`), func(e *rpc.Error) bool {
			return len(e.Message) == 2048+len("…")
		}},
		{"message that fits", failure(`"code":"HANDLER_ERROR","message":"` + strings.Repeat("x", 2048) + `"`), func(e *rpc.Error) bool {
			return len(e.Message) == 2048
		}},
		{"foreign code", failure(`"code":"` + strings.Repeat("X", 129) + `"`), func(e *rpc.Error) bool {
			return e.Code == rpc.CodeRemote && len(e.RemoteCode) == 128+len("…")
		}},
		{"violations", failure(violations(1001)), func(e *rpc.Error) bool { return len(e.Violations) == 1000 && e.ViolationsOmitted == 1 }},
		{"violations that fit", failure(violations(1000)), func(e *rpc.Error) bool { return len(e.Violations) == 1000 && e.ViolationsOmitted == 0 }},
		{"omitted violations", failure(violations(1) + `,"violationsOmitted":7`), func(e *rpc.Error) bool { return len(e.Violations) == 1 && e.ViolationsOmitted == 7 }},
		{"too many omitted", failure(violations(1001) + `,"violationsOmitted":1000000`), func(e *rpc.Error) bool { return e.ViolationsOmitted == schema.MaxOmitted }},
		{"negative", failure(violations(1) + `,"violationsOmitted":-7`), func(e *rpc.Error) bool { return e.ViolationsOmitted == 0 }},
		{"details", failure(`"code":"HANDLER_ERROR","details":"` + strings.Repeat("x", 2047) + `"`), func(e *rpc.Error) bool { return e.Details == nil }},
		{"details that fit", failure(`"code":"HANDLER_ERROR","details":"` + strings.Repeat("x", 2046) + `"`), func(e *rpc.Error) bool {
			return len(e.Details) == 2048
		}},
		{"our code, retryable by itself", failure(`"code":"EAGENTRPC_BUSY"`), func(e *rpc.Error) bool { return e.Retryable }},
		{"our code, retryable by its word", failure(`"code":"EAGENTRPC_DENIED","retryable":true`), func(e *rpc.Error) bool { return e.Retryable }},
		{"our code, not retryable", failure(`"code":"EAGENTRPC_DENIED"`), func(e *rpc.Error) bool { return !e.Retryable }},
		{"the skill decides", failure(`"code":"HANDLER_ERROR","retryable":true`), func(e *rpc.Error) bool { return e.Retryable }},
		{"no code", failure(`"message":"m"`), func(e *rpc.Error) bool { return invalid(e) && strings.HasSuffix(e.Message, ": m") }},
		{"a text", `{"ok":false,"error":"no such note"}`, func(e *rpc.Error) bool {
			return e.Code == rpc.CodeHandlerError && e.Message == "no such note" && !e.Retryable
		}},
		{"a long text", `{"ok":false,"error":"` + strings.Repeat("x", 2049) + `"}`, func(e *rpc.Error) bool { return len(e.Message) == 2048+len("…") }},
		{"an empty text", `{"ok":false,"error":""}`, invalid},
		{"a wait", failure(`"code":"EAGENTRPC_RATE_LIMITED","retryAfterMs":1500`), func(e *rpc.Error) bool { return e.RetryAfter() == 1500*time.Millisecond }},
		{"an endless wait", failure(`"code":"EAGENTRPC_RATE_LIMITED","retryAfterMs":9223372036854775807`), func(e *rpc.Error) bool { return e.RetryAfter() == rpc.MaxTimeout }},
		{"a wait that is over", failure(`"code":"EAGENTRPC_RATE_LIMITED","retryAfterMs":-5`), func(e *rpc.Error) bool { return e.RetryAfter() == 0 }},
		{"no error", `{"ok":false}`, invalid},
		{"error is no object", `{"ok":false,"error":7}`, invalid},
		{"no ok", `{"data":1}`, noShape},
		{"an array", `[{"ok":true}]`, noShape},
		{"nothing", ``, noShape},
		{"cut off in a key", `{"o`, noShape},
		{"cut off in a value", `{"ok":tr`, noShape},
		{"too deep", `{"ok":true,"data":` + strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1) + `}`, noShape},
	} {
		if data, err := ParseReply([]byte(test.payload)); data != nil || err == nil || !test.holds(err) {
			t.Errorf("%s: %s, %.300v", test.name, data, err)
		}
	}
}

func invalid(e *rpc.Error) bool {
	return e.Code == rpc.CodeInvalidEnvelope && strings.Contains(e.Message, "without a code")
}

func noShape(e *rpc.Error) bool {
	return e.Code == rpc.CodeInvalidEnvelope && strings.Contains(e.Message, "is not {ok, data} or {ok, error}") && e.Unwrap() != nil
}

// A reply that is cut off anywhere is no success with another answer, and no panic.
func TestParseReplyCutOff(t *testing.T) {
	const payload = `{"ok":true , "data":{"a":[1]} , "x":1}`
	for i := range payload {
		data, err := ParseReply([]byte(payload[:i]))
		if err == nil && string(data) != `{"a":[1]}` && string(data) != "null" {
			t.Errorf("%s: %s", payload[:i], data)
		}
	}
}

// Members may come in any order, repeat, be escaped and be unknown.
func TestParseReplyMembers(t *testing.T) {
	for payload, want := range map[string]string{
		` { "data" : 1 , "ok" : true } `:                       `1`,
		`{"ok":true}`:                                          `null`,
		`{"\u006fk":true,"d\u0061ta":[2]}`:                     `[2]`,
		`{"ok":true,"later":{"data":9},"data":"x"}`:            `"x"`,
		"{\t\"ok\":\n\ttrue ,\r\n \"data\": {\"a\":1}}":        `{"a":1}`,
		`{"ok":false,"ok":true,"data":3,"error":{"code":"X"}}`: `3`,
	} {
		if data, err := ParseReply([]byte(payload)); err != nil || string(data) != want {
			t.Errorf("%s: %s, %v", payload, data, err)
		}
	}
}

// Only a payload that begins and ends like an answer is one without parsing.
func TestBareAnswerNeedsBothEnds(t *testing.T) {
	for _, payload := range []string{`{"ok":true,"data":1`, `{"ok":true}`, `{"ok":false,"data":1}`, ``} {
		if bare, ok := BareAnswer([]byte(payload)); ok {
			t.Errorf("%s: cut out %s", payload, bare)
		}
	}
}

func TestStaleDigest(t *testing.T) {
	err := Stale("review-pr", "sha256:a")
	if err.Code != rpc.CodeSchemaStale || !strings.Contains(err.Message, `"review-pr"`) || StaleDigest(err) != "sha256:a" {
		t.Errorf("%+v, digest %q", err, StaleDigest(err))
	}
	_, back := ParseReply(Failure(err).Bytes())
	if StaleDigest(back) != "sha256:a" {
		t.Errorf("over the wire: %+v", back)
	}
	for _, other := range []*rpc.Error{
		{Code: rpc.CodeDenied, Details: err.Details}, {Code: rpc.CodeSchemaStale}, {Code: rpc.CodeSchemaStale, Details: json.RawMessage(`7`)},
	} {
		if got := StaleDigest(other); got != "" {
			t.Errorf("%+v has the digest %q", other, got)
		}
	}
}

func TestDraining(t *testing.T) {
	err := Draining("agent://a")
	if err.Code != rpc.CodeBusy || !err.Retryable || !IsDraining(err) || err.RetryAfter() != 0 {
		t.Errorf("%+v", err)
	}
	if _, back := ParseReply(Failure(err).Bytes()); !IsDraining(back) {
		t.Errorf("over the wire: %+v", back)
	}
	for _, other := range []*rpc.Error{
		{Code: rpc.CodeInternal, Details: err.Details}, {Code: rpc.CodeBusy}, {Code: rpc.CodeBusy, Details: json.RawMessage(`{"retry_after_seconds":1}`)},
	} {
		if IsDraining(other) {
			t.Errorf("%+v is taken for it", other)
		}
	}
}
