package auditchain

import (
	"context"

	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/erase"
)

// Recovery is what [Open] found.
type Recovery struct {
	// Created is true for a log that did not exist before.
	Created bool
	// Records is the number of the newest record, 0 in an empty log.
	Records int64
	// Unsigned counts the records after the newest checkpoint. If there are any,
	// the log was not closed the last time. They were checked and are now signed.
	Unsigned int64
	// Resumed counts the records whose erasure or removal was interrupted and is
	// now complete.
	Resumed int64
	// Resuming is true if that was too much to do at once: the rest goes on while the log
	// takes records, see [Status.Erasing].
	Resuming bool
	// KeysMissing is true if the file of public keys was not there; Open has written it
	// again, and nobody but an auditor can tell whether these are the right ones.
	// CheckpointMissing is true if the checkpoint file was not there though the log has
	// been signed: nothing would have shown that the database was cut. Both are so
	// after a backup of the database alone was restored.
	KeysMissing, CheckpointMissing bool
	// KeyChanged is true if an interrupted change of the signing key was
	// completed, or a lost key replaced.
	KeyChanged bool
}

// Recovery returns what [Open] found.
func (l *Log) Recovery() Recovery { return l.recovery }

// Status is the health of a log: its errors, what is signed, and its witnesses.
type Status struct {
	// Broken is the error after which the log accepts no more records, or nil.
	Broken error
	// Records is the number of the newest durable record, Signed that of the
	// newest under a checkpoint.
	Records, Signed int64
	// Signing is the error of the last checkpoint that was due by time, or nil.
	Signing error
	// CheckpointFile is the error of the last write of the checkpoint file.
	CheckpointFile error
	// Erasing is true while the log completes an erasure that was interrupted. Erasure is the
	// error that it has met, or nil: what was to be erased is still in the files, and the log
	// tries again within a minute.
	Erasing bool
	Erasure error
	// Witnesses maps each witness asked so far to the outcome: nil if it has
	// co-signed, [checkpoint.ErrInconsistent] if it has seen another history of
	// this log.
	Witnesses map[string]error
}

// Status returns the state of the log. It works on a broken log too, and it notices
// files that were deleted or replaced since the last append.
func (l *Log) Status(ctx context.Context) (Status, error) {
	var s Status
	c := &command{done: make(chan error, 1), always: true, run: func(w *chain.Writer) error {
		s.Broken, s.Signing = w.Check(), l.signing
		s.Records, s.Signed = w.Head().Seq, w.Head().Signed
		return nil
	}}
	if err := l.runCommand(ctx, c); err != nil {
		return Status{}, err
	}
	s.Witnesses, s.CheckpointFile = l.publisher.Status()
	s.Erasing = l.completing.Load() > 0
	if err := l.unfinished.Load(); err != nil {
		s.Erasure = *err
	}
	return s, nil
}

// Reopen ends the state that [Status.Broken] reports, where its cause has passed: it
// opens the database again, with the checks of [Open], and makes sure that every
// acknowledged record is still there. A log whose files are gone stays as it is; no
// new one is created. Reopen does nothing to a log that is not broken.
func (l *Log) Reopen(ctx context.Context) error {
	more := false
	err := l.runCommand(ctx, &command{done: make(chan error, 1), always: true, run: func(w *chain.Writer) (err error) {
		broken := w.Broken() != nil
		if err := w.Reopen(ctx); err != nil || !broken {
			return err
		}
		if _, more, err = erase.Resume(ctx, w); err != nil { // as at a start
			return err
		}
		if !more {
			l.unfinished.Store(nil)
		}
		// The readers' connections may be to files that are no longer there.
		l.db.Reconnect()
		return nil
	}})
	if more {
		l.finishErasure(nil)
	}
	return err
}
