package rpc_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/agentd/agentd/rpc"
)

// The error of a call says why its record could not be kept, as far as others may
// know, and whether trying again may help.
func TestExplain(t *testing.T) {
	t.Parallel()
	disk := errors.New("/var/lib/a.db: no space left")
	for _, passes := range []bool{true, false} {
		why := &rpc.RecordError{Cause: "disk-full", Text: "the disk is full", Passes: passes, Err: disk}
		e := rpc.NewError(rpc.CodeAuditFailed, fmt.Errorf("appending: %w", why), "no record of %s", "x").Explain()
		if e.Message != "no record of x: the disk is full" || e.Retryable != passes || string(e.Details) != `{"cause":"disk-full"}` || !errors.Is(e, disk) {
			t.Errorf("%+v, %s", e, e.Details)
		}
	}
	for _, cause := range []error{nil, disk} {
		if e := rpc.NewError(rpc.CodeAuditFailed, cause, "m").Explain(); e.Message != "m" || e.Retryable || e.Details != nil {
			t.Errorf("%+v", e)
		}
	}
}
