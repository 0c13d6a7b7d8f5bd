package chain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// Reopen opens the database of a broken writer again, so that a fault of the disk
// that has passed does not take a restart. It does nothing to a sound writer.
//
// It makes the checks of [Open], and others that only a running writer can make: all
// that it has acknowledged must still be there, and nothing but what it has written.
// It never creates a log: without its files the
// writer stays broken, and [Writer.Broken] has the newest reason.
func (w *Writer) Reopen(ctx context.Context) error {
	if w.broken == nil {
		return nil
	}
	w.broken = w.reopen(ctx)
	return w.broken
}

func (w *Writer) reopen(ctx context.Context) error {
	path := w.db.Path
	// Before anything is closed: as long as the files are away, there is nothing to
	// open, and SQLite would create an empty database in their place.
	if _, err := os.Stat(path); err != nil {
		return missing(path, err)
	}
	if err := w.relock(); err != nil {
		return err
	}
	_ = w.db.Close() // it may be closed already, and its contents are checked below
	db, err := store.OpenWriter(ctx, path, w.connect)
	if err != nil {
		return err
	}
	next := &Writer{db: db, options: w.options, connect: w.connect}
	if err := next.resume(ctx, w); err != nil {
		_ = db.Close() // err is what matters
		return err
	}
	w.db, w.head, w.clockBehind = db, next.head, false
	w.files = [2]os.FileInfo{} // the next commit finds them
	w.setKey(next.key)
	return nil
}

// missing is the error for a database that is not there. Its remedy is one that
// loses nothing; a restart would begin a new log.
func missing(path string, err error) error {
	e := &auditerr.Error{Code: auditerr.CodeIO, Path: path, Msg: "the database cannot be reached", Err: err,
		Hint: "check the disk and its mount; the log goes on when it can be written"}
	if errors.Is(err, fs.ErrNotExist) {
		e.Msg, e.Hint = "the database was deleted or moved away", "put its folder back, and the log goes on; without it, restore a backup and start the agent again"
	}
	return e
}

// relock makes sure that the lock is on the file which another process would look
// for: the folder may be another one than before.
func (w *Writer) relock() error {
	if w.lock.Held() {
		return nil
	}
	lock, err := sidecar.Lock(w.db.Path)
	if err != nil {
		return err
	}
	w.lock.Release()
	w.lock = lock
	return nil
}

// resume loads the state of a log that before was writing, and checks that it is the
// same log and has all that before has acknowledged.
func (w *Writer) resume(ctx context.Context, before *Writer) error {
	version, err := w.db.Version(ctx)
	if err != nil {
		return err
	}
	if version != store.SchemaVersion {
		return w.db.Tampered("the database is not the one that was open", nil)
	}
	if _, err := w.load(ctx); err != nil {
		return err
	}
	if w.db.Identity != before.db.Identity {
		return w.db.Tampered("the database is that of another log, "+w.db.Identity.Origin, nil)
	}
	if err := w.loadHead(ctx); err != nil {
		return err
	}
	if err := w.checkWritten(ctx, before); err != nil {
		return err
	}
	_, err = w.recover(ctx)
	return err
}

// checkWritten compares the database with what before has written: the newest state
// that callers were told is durable, which the disk may have lost in part after a
// failed sync; or that of the transaction whose outcome nobody knows. What else is
// there was written by somebody else, and must not be signed.
func (w *Writer) checkWritten(ctx context.Context, before *Writer) error {
	durable, inDoubt := &before.head, &before.inDoubt
	if w.head.Seq < durable.Seq {
		return &auditerr.Error{Code: auditerr.CodeRollback, Path: w.db.Path,
			Msg:  fmt.Sprintf("the log ends at record %d, but %d were durable", w.head.Seq, durable.Seq),
			Hint: "the disk has lost records, or the database is an old copy: restore the newest one, or keep what is left as evidence and start the agent again"}
	}
	root, err := w.db.Tree(ctx).Root(durable.Seq)
	if err != nil {
		return err
	}
	if root != durable.Tree.Root() {
		return w.db.Tampered(fmt.Sprintf("the first %d records are not those that were written", durable.Seq), nil)
	}
	if w.head.Hash != durable.Hash && w.head.Hash != inDoubt.Hash {
		return w.db.Tampered(fmt.Sprintf("another program has written the records after %d", durable.Seq), nil)
	}
	return nil
}
