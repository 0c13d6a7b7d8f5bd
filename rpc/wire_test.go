package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// The text of a code is what other versions and other languages know it by, and
// callers act on the rest: no row may change.
func TestEveryCode(t *testing.T) {
	const again, final = true, false
	table := []struct {
		code      rpc.Code
		text      string
		retryable bool
		status    rpc.Status
	}{
		{rpc.CodeInvalidRequest, "EAGENTRPC_INVALID_REQUEST", final, "error"},
		{rpc.CodeInvalidPayload, "EAGENTRPC_INVALID_PAYLOAD", final, "error"},
		{rpc.CodePayloadTooLarge, "EAGENTRPC_PAYLOAD_TOO_LARGE", final, "error"},
		{rpc.CodeNoPeer, "EAGENTRPC_NO_PEER", final, "error"},
		{rpc.CodeNoCapability, "EAGENTRPC_NO_CAPABILITY", final, "error"},
		{rpc.CodeNoTransport, "EAGENTRPC_NO_TRANSPORT", final, "error"},
		{rpc.CodeNeedsDurable, "EAGENTRPC_NEEDS_DURABLE_TRANSPORT", final, "error"},
		{rpc.CodeDenied, "EAGENTRPC_DENIED", final, "error"},
		{rpc.CodeSchemaDrift, "EAGENTRPC_SCHEMA_DRIFT", final, "error"},
		{rpc.CodeSchemaStale, "EAGENTRPC_SCHEMA_STALE", again, "error"},
		{rpc.CodeSchemaViolation, "EAGENTRPC_SCHEMA_VIOLATION", final, "schema-violation"},
		{rpc.CodeValidationExceeded, "EAGENTRPC_VALIDATION_EXCEEDED", final, "error"},
		{rpc.CodeAuditFailed, "EAGENTRPC_AUDIT_FAILED", final, "error"},
		{rpc.CodeRateLimited, "EAGENTRPC_RATE_LIMITED", again, "error"},
		{rpc.CodeCircuitOpen, "EAGENTRPC_CIRCUIT_OPEN", again, "error"},
		{rpc.CodeBusy, "EAGENTRPC_BUSY", again, "busy"},
		{rpc.CodeHopLimit, "EAGENTRPC_HOP_LIMIT", final, "error"},
		{rpc.CodePublishFailed, "EAGENTRPC_PUBLISH_FAILED", again, "error"},
		{rpc.CodeDisconnected, "EAGENTRPC_DISCONNECTED", again, "error"},
		{rpc.CodeNoResponders, "EAGENTRPC_NO_RESPONDERS", again, "error"},
		{rpc.CodeTimeout, "EAGENTRPC_TIMEOUT", again, "timeout"},
		{rpc.CodeCancelled, "EAGENTRPC_CANCELLED", final, "abandoned"},
		{rpc.CodeAbandoned, "EAGENTRPC_ABANDONED", again, "abandoned"},
		{rpc.CodeInvalidEnvelope, "EAGENTRPC_INVALID_ENVELOPE", final, "error"},
		{rpc.CodeMisaddressed, "EAGENTRPC_MISADDRESSED", final, "error"},
		{rpc.CodeAuthFailed, "EAGENTRPC_AUTH_FAILED", final, "error"},
		{rpc.CodeAuthRejected, "AUTH_REJECTED", final, "error"},
		{rpc.CodeTenantMismatch, "EAGENTRPC_TENANT_MISMATCH", final, "error"},
		{rpc.CodeVersionSkew, "EVERSION_SKEW", final, "error"},
		{rpc.CodeIdempotencyConflict, "EAGENTRPC_IDEMPOTENCY_CONFLICT", final, "error"},
		{rpc.CodeOutcomeUnknown, "EAGENTRPC_OUTCOME_UNKNOWN", final, "error"},
		{rpc.CodeDeadlineExceeded, "EAGENTRPC_DEADLINE_EXCEEDED", again, "timeout"},
		{rpc.CodeHandlerError, "HANDLER_ERROR", final, "error"},
		{rpc.CodeBadSkillOutput, "EAGENTRPC_BAD_SKILL_OUTPUT", final, "error"},
		{rpc.CodeInputRequired, "EAGENTRPC_INPUT_REQUIRED", final, "error"},
		{rpc.CodeInternal, "EAGENTRPC_INTERNAL", again, "error"},
		{rpc.CodeRemote, "EAGENTRPC_REMOTE", final, "error"},
	}
	var listed []rpc.Code
	for _, row := range table {
		listed = append(listed, row.code)
		if c := row.code; c.String() != row.text || c.Retryable() != row.retryable || c.Status() != row.status {
			t.Errorf("%s is %s, retryable %v, status %s", row.text, c, c.Retryable(), c.Status())
		}
		e := rpc.NewError(row.code, nil, "m")
		data, err := e.MarshalJSON()
		if want := fmt.Sprintf(`{"code":%q,"message":"m","retryable":%v}`, row.text, row.retryable); err != nil || string(data) != want {
			t.Errorf("%s, %v, want %s", data, err, want)
		}
	}
	if !slices.Equal(listed, rpc.Codes()) {
		t.Errorf("the table has %d codes, and there are %d: %v", len(listed), len(rpc.Codes()), rpc.Codes())
	}
}

// A text that is nearly a code is none, and a code keeps its value when another
// cannot be read.
func TestTextsThatAreNoCode(t *testing.T) {
	for _, text := range []string{
		"", " ", "OK", "eagentrpc_busy", "EAGENTRPC_BUSY ", "EAGENTRPC_BUSY\x00", "EAGENTRPC_", "Code(1)", "1", strings.Repeat("X", 1<<16),
	} {
		c := rpc.CodeBusy
		if err := c.UnmarshalText([]byte(text)); err == nil || c != rpc.CodeBusy || len(err.Error()) > 200 {
			t.Errorf("%.40q: %v is the code %v", text, err, c)
		}
		e := rpc.Error{Code: rpc.CodeBusy}
		if e.SetCodeText(text); e.Code != rpc.CodeRemote || e.RemoteCode != text {
			t.Errorf("%.40q: %v, %.40q", text, e.Code, e.RemoteCode)
		}
		if want := text; want != "" && e.CodeText() != want || want == "" && e.CodeText() != "EAGENTRPC_REMOTE" {
			t.Errorf("%.40q travels as %.40q", text, e.CodeText())
		}
	}
}

func drawJSON(t *rapid.T, name string) json.RawMessage {
	return json.RawMessage(rapid.SampledFrom([]string{`1`, `"<&>"`, `[null]`, `{"a":{"b":[1e400]}}`, `"\u2028"`}).Draw(t, name))
}

// Any request comes back as it was, to the millisecond.
func TestRequestsRoundTrip(t *testing.T) {
	ms := rapid.Int64Range(0, 9_000_000_000)
	rapid.Check(t, func(t *rapid.T) {
		want := rpc.Request{
			To: envelope.Address("agent://" + rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "to")), Capability: rapid.String().Draw(t, "capability"),
			Timeout: time.Duration(ms.Draw(t, "timeout")) * time.Millisecond, IdleTimeout: time.Duration(ms.Draw(t, "idle")) * time.Millisecond,
			Mode:           rapid.SampledFrom([]rpc.Mode{"", rpc.ModeSync, rpc.ModeAsync, rpc.ModeFireAndForget}).Draw(t, "mode"),
			IdempotencyKey: rapid.String().Draw(t, "key"), SessionID: rapid.String().Draw(t, "session"),
		}
		if rapid.Bool().Draw(t, "has a payload") {
			want.Payload = drawJSON(t, "payload")
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got rpc.Request
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		// json.Marshal escapes < > & inside what MarshalJSON returns: the value is the same.
		if again, err := json.Marshal(got); err != nil || string(again) != string(data) {
			t.Fatalf("%s came back as %s, %v", data, again, err)
		}
		got.Payload = want.Payload
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s came back as %+v", data, got)
		}
	})
}

// Any result comes back as it was, to the microsecond: tools read it in another
// process.
func TestResultsRoundTrip(t *testing.T) {
	us := rapid.Int64Range(0, int64(24*time.Hour/time.Microsecond))
	rapid.Check(t, func(t *rapid.T) {
		want := rpc.Result{
			CorrelationID: rapid.StringMatching(`[a-z0-9-]{0,40}`).Draw(t, "id"), Status: rpc.StatusOK,
			Latency: time.Duration(us.Draw(t, "latency")) * time.Microsecond, ExecutionTime: time.Duration(us.Draw(t, "execution")) * time.Microsecond,
			Replayed: rapid.Bool().Draw(t, "replayed"), Queued: rapid.Bool().Draw(t, "queued"),
		}
		if rapid.Bool().Draw(t, "ok") {
			want.Response = drawJSON(t, "response")
		} else {
			code := rapid.SampledFrom(rpc.Codes()).Draw(t, "code")
			want.Status = code.Status()
			want.Error = rpc.NewError(code, io.EOF, "%s", rapid.String().Draw(t, "message"))
			want.Error.DetectedBy = "agent://b"
			if code == rpc.CodeSchemaViolation {
				want.SchemaSide, want.Violations = rpc.SideRequest, []schema.Violation{{Path: "/a", Message: "m"}}
				want.Error.Side, want.Error.Violations = want.SchemaSide, want.Violations
			}
		}
		data, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var got rpc.Result
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		near := func(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond } // ms as a double
		if !near(got.Latency, want.Latency) || !near(got.ExecutionTime, want.ExecutionTime) {
			t.Fatalf("%s came back with %s and %s", data, got.Latency, got.ExecutionTime)
		}
		got.Latency, got.ExecutionTime = want.Latency, want.ExecutionTime
		if want.Error != nil {
			if got.Error == nil || errors.Is(got.Error, io.EOF) {
				t.Fatalf("%s came back with %v: a cause does not travel", data, got.Error)
			}
			plain := *want.Error
			want.Error = &rpc.Error{
				Code: plain.Code, Message: plain.Message, Retryable: plain.Retryable, DetectedBy: plain.DetectedBy, Side: plain.Side, Violations: plain.Violations,
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s came back as %+v, error %+v", data, got, got.Error)
		}
	})
}

// Whatever JSON comes from elsewhere, it is refused or read as something that can be
// written and read again, and asks for no wait beyond the longest call.
func FuzzWire(f *testing.F) {
	for _, seed := range []string{
		`{"to":"agent://a","capability":"x","payload":[1],"timeoutMs":1500}`, `{"timeoutMs":-9223372036854775808}`, `{"timeoutMs":1e3}`, `{"mode":7}`,
		`{"status":"ok","correlationId":"c","latencyMs":1e300,"response":null}`, `{"latencyMs":-1,"executionTimeMs":"x"}`,
		`{"code":"EAGENTRPC_RATE_LIMITED","details":{"retry_after_seconds":1e308}}`, `{"code":"EAGENTRPC_CIRCUIT_OPEN","details":{"retry_after_seconds":-5}}`,
		`{"code":"","message":"\u0000"}`, `{"code":null,"details":[]}`, `null`, `[]`, `{`, `"EAGENTRPC_BUSY"`, `{"error":{"code":"X","details":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var q rpc.Request
		if json.Unmarshal(data, &q) == nil {
			if q.Timeout < 0 || q.IdleTimeout < 0 || q.OnProgress != nil {
				t.Errorf("%s is read as %+v", data, q)
			}
			again(t, q, &rpc.Request{})
		}
		var e rpc.Error
		if json.Unmarshal(data, &e) == nil {
			if after := e.RetryAfter(); after < 0 || after > rpc.MaxTimeout || after > 0 && e.Code != rpc.CodeRateLimited && e.Code != rpc.CodeCircuitOpen && e.Code != rpc.CodeBusy {
				t.Errorf("%s asks to wait %s", data, after)
			}
			if (e.Code == rpc.CodeRemote) != (e.RemoteCode != "") && e.CodeText() != rpc.CodeRemote.String() {
				t.Errorf("%s is read as the code %v, %q", data, e.Code, e.RemoteCode)
			}
			again(t, &e, &rpc.Error{})
		}
		var r rpc.Result
		if json.Unmarshal(data, &r) == nil {
			if r.Error != nil && (r.Error.Side != r.SchemaSide || len(r.Error.Violations) != len(r.Violations)) {
				t.Errorf("%s: the error and its result disagree", data)
			}
			again(t, &r, &rpc.Result{})
		}
	})
}

// again writes a value, and reads it back.
func again(t *testing.T, v, into any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%+v cannot be written: %v", v, err)
		return
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Errorf("%s cannot be read back: %v", data, err)
	}
}

// A nested call belongs to the innermost invocation.
func TestInnermostInvocation(t *testing.T) {
	outer, inner := &rpc.Invocation{MessageID: "outer"}, &rpc.Invocation{MessageID: "inner"}
	ctx := rpc.WithInvocation(t.Context(), outer)
	nested := rpc.WithInvocation(ctx, inner)
	if rpc.InvocationFrom(nested) != inner || rpc.InvocationFrom(ctx) != outer || rpc.InvocationFrom(context.WithoutCancel(nested)) != inner {
		t.Errorf("%+v within %+v", rpc.InvocationFrom(nested), rpc.InvocationFrom(ctx))
	}
	if got := rpc.InvocationFrom(rpc.WithInvocation(ctx, nil)); got != nil {
		t.Errorf("a context without an invocation serves %+v", got)
	}
}

// A skill's error is found through what wraps it, and a handler's context and
// payload reach the function.
func TestHandlerFuncPassesEverything(t *testing.T) {
	cause := &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: "no", Retryable: true, Err: io.ErrUnexpectedEOF}
	want := &rpc.Invocation{Capability: "x"}
	h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if inv != want || rpc.InvocationFrom(ctx) != want {
			t.Errorf("called with %+v", inv)
		}
		return json.RawMessage(`1`), fmt.Errorf("skill: %w", cause)
	})
	out, err := rpc.Handler(h).Handle(rpc.WithInvocation(t.Context(), want), want)
	got, ok := errors.AsType[*rpc.SkillError](err)
	if string(out) != "1" || !ok || got != cause || !errors.Is(err, io.ErrUnexpectedEOF) || rpc.CodeOf(err) != 0 {
		t.Errorf("%s, %v", out, err)
	}
}
