package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
)

func TestCodesRoundTrip(t *testing.T) {
	statuses := map[rpc.Status]bool{
		rpc.StatusError: true, rpc.StatusTimeout: true, rpc.StatusAbandoned: true, rpc.StatusBusy: true, rpc.StatusSchemaViolation: true,
	}
	seen := map[string]bool{}
	for _, c := range rpc.Codes() {
		text, err := c.MarshalText()
		if err != nil || len(text) == 0 || seen[string(text)] {
			t.Errorf("code %d: text %q (twice: %v), %v", c, text, seen[string(text)], err)
		}
		seen[string(text)] = true
		var back rpc.Code
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
		if !statuses[c.Status()] {
			t.Errorf("%s has the status %q", c, c.Status())
		}
	}
	for _, bad := range []rpc.Code{0, rpc.Code(len(seen) + 1)} {
		if _, err := bad.MarshalText(); err == nil || bad.Retryable() {
			t.Errorf("%v counts as a code", bad)
		}
	}
	var c rpc.Code
	if err := c.UnmarshalText([]byte("OK")); err == nil {
		t.Error("OK is read as a code")
	}
	for _, reference := range []string{
		"EAGENTRPC_TIMEOUT", "EAGENTRPC_ABANDONED", "EAGENTRPC_BUSY", "EAGENTRPC_NO_TRANSPORT", "EAGENTRPC_NO_PEER",
		"EAGENTRPC_NO_CAPABILITY", "EAGENTRPC_PUBLISH_FAILED", "EAGENTRPC_SCHEMA_VIOLATION", "EAGENTRPC_INVALID_ENVELOPE",
		"EAGENTRPC_AUTH_FAILED", "EAGENTRPC_DEADLINE_EXCEEDED", "EAGENTRPC_TENANT_MISMATCH", "EVERSION_SKEW", "AUTH_REJECTED", "HANDLER_ERROR",
	} {
		if !seen[reference] {
			t.Errorf("the reference system's %s is missing", reference)
		}
	}
}

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("nested: %w", &rpc.Error{Code: rpc.CodeBusy, Message: "full"})
	if !errors.Is(err, &rpc.Error{Code: rpc.CodeBusy}) || errors.Is(err, &rpc.Error{Code: rpc.CodeTimeout}) || rpc.CodeOf(err) != rpc.CodeBusy {
		t.Errorf("%v is not found by its code", err)
	}
	if rpc.CodeOf(errors.New("x")) != 0 {
		t.Error("an error without a code has one")
	}
}

// An error compares by its code alone, and only with a bare code.
func TestErrorIsComparesCodes(t *testing.T) {
	err := rpc.NewError(rpc.CodeBusy, context.Canceled, "%d calls", 3)
	if errors.Is(err, &rpc.Error{Code: rpc.CodeBusy, Message: "other"}) {
		t.Error("two errors with different messages are the same")
	}
	if !errors.Is(err, context.Canceled) || err.Unwrap() != context.Canceled || err.Message != "3 calls" || !err.Retryable || err.Error() != "EAGENTRPC_BUSY: 3 calls" {
		t.Errorf("%+v", err)
	}
	if rpc.NewError(rpc.CodeDenied, nil, "no").Retryable {
		t.Error("a denial is retryable")
	}
}

// A code that this version does not know keeps its text, there and back.
func TestErrorJSON(t *testing.T) {
	for _, test := range []struct {
		json string
		want rpc.Error
	}{
		{`{"code":"EAGENTRPC_BUSY","message":"m","retryable":true,"detectedBy":"agent://a","details":{"d":1}}`,
			rpc.Error{Code: rpc.CodeBusy, Message: "m", Retryable: true, DetectedBy: "agent://a", Details: json.RawMessage(`{"d":1}`)}},
		{`{"code":"AGENT_ERROR","message":"<m>","retryable":false}`, rpc.Error{Code: rpc.CodeRemote, RemoteCode: "AGENT_ERROR", Message: "<m>"}},
		{`{"code":"EAGENTRPC_REMOTE","message":"m","retryable":false}`, rpc.Error{Code: rpc.CodeRemote, Message: "m"}},
	} {
		var got rpc.Error
		if err := json.Unmarshal([]byte(test.json), &got); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", test.json, got, err)
		}
		data, err := got.MarshalJSON()
		if err != nil || string(data) != test.json {
			t.Errorf("%s comes back as %s, %v", test.json, data, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"code":7}`), &rpc.Error{}); err == nil {
		t.Error("a bad error is read")
	}
	e := rpc.Error{Code: rpc.CodeRemote, RemoteCode: "X"}
	if e.SetCodeText("EAGENTRPC_BUSY"); e.Code != rpc.CodeBusy || e.RemoteCode != "" || e.CodeText() != "EAGENTRPC_BUSY" {
		t.Errorf("%+v", e)
	}
	e.RemoteCode = "X" // means nothing beside a code of ours
	if e.CodeText() != "EAGENTRPC_BUSY" {
		t.Errorf("code %s", e.CodeText())
	}
}

// Only limits, breakers and full queues say how long to wait, and a peer's nonsense is clamped.
func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		code    rpc.Code
		details string
		want    time.Duration
	}{
		{rpc.CodeRateLimited, `{"retry_after_seconds":2.5}`, 2500 * time.Millisecond},
		{rpc.CodeCircuitOpen, `{"retry_after_seconds":30}`, 30 * time.Second},
		{rpc.CodeBusy, `{"retry_after_seconds":30}`, 30 * time.Second},
		{rpc.CodeTimeout, `{"retry_after_seconds":30}`, 0},
		{rpc.CodeRateLimited, `{"retry_after_seconds":-1}`, 0},
		{rpc.CodeRateLimited, `{"retry_after_seconds":1e300}`, rpc.MaxTimeout},
		{rpc.CodeRateLimited, `{"retry_after_seconds":600}`, rpc.MaxTimeout},
		{rpc.CodeRateLimited, `{}`, 0},
		{rpc.CodeRateLimited, `[]`, 0},
		{rpc.CodeRateLimited, ``, 0},
	} {
		e := rpc.Error{Code: test.code, Details: json.RawMessage(test.details)}
		if got := e.RetryAfter(); got != test.want {
			t.Errorf("%s with %s: %s, want %s", test.code, test.details, got, test.want)
		}
	}
}

func TestSkillError(t *testing.T) {
	cause := errors.New("disk full")
	if e := (&rpc.SkillError{Message: "no", Err: cause}); e.Error() != "no: disk full" || !errors.Is(e, cause) {
		t.Errorf("%v", e)
	}
	if e := (&rpc.SkillError{Message: "no"}); e.Error() != "no" || e.Unwrap() != nil {
		t.Errorf("%v", e)
	}
}

// Which failures may pass, and what they look like from afar, is part of the
// contract: callers act on it.
func TestCodeTable(t *testing.T) {
	retryable := map[rpc.Code]bool{
		rpc.CodeSchemaStale: true, rpc.CodeRateLimited: true, rpc.CodeCircuitOpen: true, rpc.CodeBusy: true, rpc.CodePublishFailed: true,
		rpc.CodeDisconnected: true, rpc.CodeNoResponders: true, rpc.CodeTimeout: true, rpc.CodeAbandoned: true, rpc.CodeDeadlineExceeded: true, rpc.CodeInternal: true,
	}
	statuses := map[rpc.Code]rpc.Status{
		rpc.CodeSchemaViolation: rpc.StatusSchemaViolation, rpc.CodeBusy: rpc.StatusBusy, rpc.CodeTimeout: rpc.StatusTimeout,
		rpc.CodeDeadlineExceeded: rpc.StatusTimeout, rpc.CodeCancelled: rpc.StatusAbandoned, rpc.CodeAbandoned: rpc.StatusAbandoned,
	}
	all := rpc.Codes()
	if all[0] != 1 || all[len(all)-1] != rpc.CodeRemote {
		t.Errorf("the codes run from %d to %d", all[0], all[len(all)-1])
	}
	for _, c := range all {
		want := statuses[c]
		if want == "" {
			want = rpc.StatusError
		}
		if c.Retryable() != retryable[c] || c.Status() != want {
			t.Errorf("%s: retryable %v, status %s", c, c.Retryable(), c.Status())
		}
	}
	for _, none := range []rpc.Code{0, rpc.CodeRemote + 1} {
		if none.Status() != rpc.StatusError || !strings.HasPrefix(none.String(), "Code(") {
			t.Errorf("%s has the status %s", none, none.Status())
		}
	}
}
