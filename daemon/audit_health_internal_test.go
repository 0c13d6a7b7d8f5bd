package daemon

import (
	"bytes"
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

// An interrupted erasure that cannot be completed is a warning, until it is complete, and the
// end of one that a start has found is told.
func TestTellErasure(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	d := &Daemon{conditions: health.NewBoard(log), log: log}
	d.auditSeen.erasing = true // as a start has found it
	d.tellErasure(&auditchain.Status{Erasing: true})
	if len(d.conditions.Warnings()) != 0 || text.Len() > 0 {
		t.Errorf("%v: %s", d.conditions.Warnings(), &text)
	}
	failing := &auditchain.Status{Erasing: true, Erasure: &auditchain.Error{Code: auditchain.CodeFull, Msg: "erasing"}}
	d.tellErasure(failing)
	d.tellErasure(failing)
	active := d.conditions.Active()
	if len(active) != 1 || active[0].Kind != health.Erasure || active[0].Code != "disk-full" || len(d.conditions.Warnings()) != 1 || d.conditions.Err() != nil {
		t.Errorf("%+v, %v", active, d.conditions.Err())
	}
	d.tellErasure(&auditchain.Status{})
	d.tellErasure(&auditchain.Status{})
	if len(d.conditions.Active()) != 0 {
		t.Errorf("%v", d.conditions.Active())
	}
	for _, line := range []string{"level=ERROR", "over: a redaction", "is complete"} {
		if strings.Count(text.String(), line) != 1 {
			t.Errorf("not one line with %q: %s", line, &text)
		}
	}
}
