package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/rpc"
)

// Of each failure of the audit log a caller learns whether it may pass, without the
// path of a file; and only what the next record would meet as well stops calls.
func TestAuditTrouble(t *testing.T) {
	passes := map[auditchain.Code]bool{
		auditchain.CodeFull: true, auditchain.CodeReadOnly: true, auditchain.CodeBusy: true, auditchain.CodeLocked: true, auditchain.CodeIO: true,
		auditchain.CodeRollback: false, auditchain.CodeTampered: false, auditchain.CodeCorrupt: false, auditchain.CodeKeyMissing: false,
		auditchain.CodeKeyUnsafe: false, auditchain.CodeVersion: false,
	}
	for code, want := range passes {
		err, trouble := auditTrouble(&auditchain.Error{Code: code, Path: "/secret/path", Msg: "m"})
		why, ok := err.(*rpc.RecordError)
		if !ok || !trouble || why.Passes != want || why.Cause != code.String() || why.Text == "" || strings.Contains(why.Text, "/") || auditchain.CodeOf(err) != code {
			t.Errorf("%v: %+v, %v", code, err, trouble)
		}
	}
	for name, err := range map[string]error{
		"no error": nil, "one bad record": &auditchain.Error{Code: auditchain.CodeInvalid}, "a caller that gave up": context.Canceled,
		"a slow disk": &auditchain.Error{Code: auditchain.CodeUncertain}, "a stopping agent": &auditchain.Error{Code: auditchain.CodeClosed},
	} {
		if why, trouble := auditTrouble(err); trouble || !errors.Is(why, err) && err != nil || err == nil && why != nil {
			t.Errorf("%s: %v, %v", name, why, trouble)
		}
	}
}
