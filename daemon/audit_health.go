package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/rpc"
)

// auditInterval is how often a healthy audit log is looked at.
const auditInterval = 2 * time.Second

// The causes of trouble that are no codes of the audit log.
const (
	// causeStalled is a disk that does not answer.
	causeStalled = "stalled"
	// causeTimeout is one record that the disk did not take in time.
	causeTimeout = "timeout"
)

// A recoveryBody is the body of the lifecycle record that shows that the audit log
// takes records again.
type recoveryBody struct {
	Event string `json:"event"` // always "recovered"
	// Code is why it took none, and From when that began, in Unix milliseconds.
	Code string `json:"code"`
	From int64  `json:"from"`
}

// auditTrouble explains an error of the audit log to calls. trouble is true if the
// next record would meet the same.
func auditTrouble(err error) (why error, trouble bool) {
	code := auditchain.CodeOf(err)
	switch {
	case err == nil, code == auditchain.CodeInvalid:
		return err, false
	case code == 0, code == auditchain.CodeUncertain:
		return &rpc.RecordError{Cause: causeTimeout, Text: "its audit log did not take the record in time", Passes: true, Err: err}, false
	case code == auditchain.CodeClosed:
		return &rpc.RecordError{Cause: code.String(), Text: "it is stopping", Passes: true, Err: err}, false
	}
	text, transient := "its audit log cannot be trusted or read until somebody has looked at it", false
	switch code {
	case auditchain.CodeFull:
		text, transient = "the disk with its audit log is full", true
	case auditchain.CodeReadOnly:
		text, transient = "its audit log cannot be written: it is read-only, or may not be opened", true
	case auditchain.CodeBusy, auditchain.CodeLocked:
		text, transient = "another program holds its audit log", true
	case auditchain.CodeIO:
		text, transient = "its audit log cannot be written: the disk fails, or the files are gone", true
	}
	return &rpc.RecordError{Cause: code.String(), Text: text, Passes: transient, Err: err}, true
}

// watchAudit begins to watch the audit log. Whenever trouble with it is over, it sends
// on recovered, which has room for one signal.
func (d *Daemon) watchAudit(log *auditchain.Log, recovered chan<- struct{}) *health.Monitor {
	return health.Watch(d.conditions, health.Watched{
		Interval: auditInterval,
		Describe: d.describeAudit,
		Check: func(ctx context.Context, failing bool) error {
			if failing {
				return d.recoverAudit(ctx, log)
			}
			return d.checkAudit(ctx, log)
		},
		Ended: func() {
			select {
			case recovered <- struct{}{}:
			default: // the signal before this one has not been taken yet
			}
		},
	})
}

// describeAudit is the condition of an audit log that takes no records.
func (d *Daemon) describeAudit(err error) health.Condition {
	agent := d.Member().Agent
	c := health.Condition{Kind: health.AuditLog, Code: causeStalled, Cause: err.Error(), Effect: "calls are refused: no record of them can be kept"}
	switch {
	case agent.Security.NoAuditLog:
		c.Advisory, c.Effect = true, "calls that break a schema or a rule fail without a record"
	case agent.Audit.FailOpen:
		c.Advisory, c.Effect = true, "calls go on without records"
	}
	var why *rpc.RecordError
	if errors.As(err, &why) {
		c.Code = why.Cause
	}
	if e, ok := errors.AsType[*auditchain.Error](err); ok {
		bare := *e
		bare.Hint = ""
		c.Cause, c.Remedy = bare.Error(), e.Hint
	}
	return c
}

// checkAudit looks at an audit log that has taken every record so far. It finds out
// what no append has met yet: files that are gone, a disk that does not answer, and a
// checkpoint that could not be signed.
func (d *Daemon) checkAudit(ctx context.Context, log *auditchain.Log) error {
	status, err := log.Status(ctx)
	if err != nil {
		return auditCheckFailure(ctx, err)
	}
	d.tellWitnesses(d.auditSeen.note(&status, time.Now()), status.Witnesses)
	d.tellCheckpoint(status.CheckpointFile)
	d.tellErasure(&status)
	d.showQuorum(status.Witnesses, time.Now())
	why, trouble := auditTrouble(errors.Join(status.Broken, status.Signing))
	if trouble {
		return why
	}
	return nil
}

// tellCheckpoint shows whether the newest checkpoint is in the file beside the log.
func (d *Daemon) tellCheckpoint(err error) {
	if err == nil {
		d.conditions.End(health.Checkpoint, "")
		return
	}
	d.conditions.Begin(health.Condition{
		Kind: health.Checkpoint, Code: "file", Advisory: true, Cause: err.Error(), Remedy: "make room on its disk, and let this user write to its folder",
		Effect: "the checkpoint beside the audit log is old: a start would not notice a database that was cut after it",
	})
}

// tellErasure shows whether an interrupted redaction or pruning is held up, and logs when one
// that a start has found is complete.
func (d *Daemon) tellErasure(s *auditchain.Status) {
	if s.Erasure != nil {
		d.conditions.Begin(health.Condition{
			Kind: health.Erasure, Code: auditchain.CodeOf(s.Erasure).String(), Advisory: true, Cause: s.Erasure.Error(),
			Effect: "a redaction or pruning of the audit log was interrupted: what it was to erase is still in its files",
			Remedy: "mend the cause: agentd tries again every minute at least",
		})
		return
	}
	d.conditions.End(health.Erasure, "")
	if d.auditSeen.erasureEnded(s.Erasing) {
		d.log.Info("an interrupted redaction or pruning of the audit log is complete")
	}
}

// recoverAudit finds out whether the audit log takes records again, with a record:
// from when until now there are none.
func (d *Daemon) recoverAudit(ctx context.Context, log *auditchain.Log) error {
	body := recoveryBody{Event: "recovered"}
	for _, c := range d.conditions.Active() {
		if c.Kind == health.AuditLog {
			body.Code, body.From = c.Code, c.Since.UnixMilli()
		}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := checkRoom(log.Path()); err != nil {
		why, _ := auditTrouble(&auditchain.Error{Code: auditchain.CodeFull, Path: log.Path(), Msg: "trying to write", Err: err, Hint: "free some disk space"})
		return why
	}
	if err := log.Reopen(ctx); err != nil {
		return auditCheckFailure(ctx, err)
	}
	if _, err := log.Append(ctx, auditchain.Record{Kind: auditchain.KindLifecycle, Body: data}); err != nil {
		return auditCheckFailure(ctx, err)
	}
	// The checkpoint that was due meanwhile.
	_, err = log.Checkpoint(ctx)
	return auditCheckFailure(ctx, err)
}

// auditCheckFailure explains why a check has failed. A check that ran out of time has
// found a disk that does not answer.
func auditCheckFailure(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &rpc.RecordError{Cause: causeStalled, Text: "the disk with its audit log does not answer", Passes: true, Err: fmt.Errorf("the disk with the audit log does not answer: %w", err)}
	}
	why, _ := auditTrouble(err)
	return why
}
