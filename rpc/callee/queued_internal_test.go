package callee

import (
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A request stays in the broker's queue while nothing was tried, and until its
// deadline: one without a deadline would stay for ever.
func TestStaysQueued(t *testing.T) {
	for _, test := range []struct {
		code      rpc.Code
		retryable bool
		began     bool
		deadline  int64
		want      bool
	}{
		{rpc.CodeBusy, true, false, 1, true},
		{rpc.CodeRateLimited, true, false, 1, true},
		{rpc.CodeBusy, true, false, 0, false},
		{rpc.CodeAuditFailed, true, false, 1, true},
		{rpc.CodeAuditFailed, true, true, 1, false}, // the skill has run
		{rpc.CodeAuditFailed, false, false, 1, false},
		{rpc.CodeHandlerError, true, true, 1, false},
	} {
		c := &call{request: &envelope.Envelope{Deadline: test.deadline}, began: test.began}
		if got := c.staysQueued(&rpc.Error{Code: test.code, Retryable: test.retryable}); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
