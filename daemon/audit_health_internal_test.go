package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/health"
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

// A check that runs out of time has found a disk that does not answer. Its end is the
// monitor's own business.
func TestStalledDisk(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	var why *rpc.RecordError
	if err := auditCheckFailure(ctx, ctx.Err()); !errors.As(err, &why) || why.Cause != causeStalled || !why.Passes {
		t.Errorf("%v", err)
	}
	if err := auditCheckFailure(ctx, nil); err != nil {
		t.Errorf("a check that succeeded at the last moment: %v", err)
	}
}

// A checkpoint that is not in its file is a warning, until it is.
func TestTellCheckpoint(t *testing.T) {
	d := &Daemon{conditions: health.NewBoard(slog.New(slog.DiscardHandler))}
	d.tellCheckpoint(nil)
	if len(d.conditions.Warnings()) != 0 {
		t.Errorf("%v", d.conditions.Warnings())
	}
	d.tellCheckpoint(errors.New("no space"))
	if w := d.conditions.Warnings(); len(w) != 1 || !strings.Contains(w[0], "no space") || d.conditions.Err() != nil {
		t.Errorf("%v, %v", w, d.conditions.Err())
	}
	d.tellCheckpoint(nil)
	if len(d.conditions.Warnings()) != 0 {
		t.Errorf("%v", d.conditions.Warnings())
	}
}
