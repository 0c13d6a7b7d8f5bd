package rpc_test

import (
	"errors"
	"fmt"
	"testing"

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
