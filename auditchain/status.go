package auditchain

import (
	"context"

	"github.com/agentd/agentd/auditchain/internal/chain"
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
	// CheckpointFile is the error of the last write of the checkpoint file.
	CheckpointFile error
	// Witnesses maps each witness asked so far to the outcome: nil if it has
	// co-signed, [checkpoint.ErrInconsistent] if it has seen another history of
	// this log.
	Witnesses map[string]error
}

// Status returns the state of the log. It works on a broken log too.
func (l *Log) Status(ctx context.Context) (Status, error) {
	var s Status
	c := &command{done: make(chan error, 1), always: true, run: func(w *chain.Writer) error {
		s.Broken, s.Records, s.Signed = w.Broken(), w.Head().Seq, w.Head().Signed
		return nil
	}}
	if err := l.runCommand(ctx, c); err != nil {
		return Status{}, err
	}
	s.Witnesses, s.CheckpointFile = l.publisher.Status()
	return s, nil
}
