package chain

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/filelock"
	"github.com/agentd/agentd/auditchain/internal/merkle"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

// Options configures a writer. All fields but Elapsed are required.
type Options struct {
	// Name becomes part of the origin of a new log.
	Name string
	// CheckpointRecords is the number of unsigned records at which a commit signs
	// a checkpoint.
	CheckpointRecords int64
	// ReplaceLostKey makes Open generate a new signing key if the log's is gone.
	ReplaceLostKey bool
	// Now is the clock.
	Now func() time.Time
	// Elapsed is the time that has passed, whatever the clock says; without it, a
	// clock that jumps ahead is followed at once.
	Elapsed func() time.Duration
}

// A Writer owns the connection that writes and the head of the chain. Its
// methods serve one goroutine, except [Writer.SigningKey].
type Writer struct {
	db      *store.Writer
	lock    *filelock.Lock
	options Options
	connect store.Connect
	key     *checkpoint.Key
	// published is key, for other goroutines.
	published atomic.Pointer[checkpoint.Key]

	// head is the state as committed.
	head Head
	// files are the database and its write-ahead log as the first commit found
	// them.
	files [2]os.FileInfo
	clock clock
	// clockBehind is true while the clock is behind the newest record.
	clockBehind bool
	// broken is the error after which nothing more is written, and inDoubt the state
	// that the transaction would have left which met it.
	broken  error
	inDoubt Head

	scratch []byte
	rows    []store.Row // of a transaction; the slice is reused
}

// A Head is the newest state of the chain.
type Head struct {
	// Seq is the number of the newest record, 0 in an empty log; Time is its
	// time in Unix milliseconds and Hash its hash.
	Seq  int64
	Time int64
	Hash tlog.Hash
	// Tree is the right edge of the Merkle tree over all records.
	Tree merkle.Frontier
	// Signed is the size of the newest checkpoint, Note its text, nil if there
	// is none.
	Signed int64
	Note   []byte
	// Sealed is true if the newest record seals the log: the next one is signed in its
	// own transaction.
	Sealed bool
}

// clone returns a head that can move on while h stays.
func (h *Head) clone() Head {
	next := *h
	next.Tree = h.Tree.Clone()
	return next
}

// DB returns the database as the writer sees it.
func (w *Writer) DB() *store.Writer { return w.db }

// Head returns the newest committed state.
func (w *Writer) Head() *Head { return &w.head }

// Broken returns the error after which the writer refuses to write, until
// [Writer.Reopen] has opened the database again. It is nil for a sound writer.
func (w *Writer) Broken() error { return w.broken }

// SigningKey returns the key that signs checkpoints at present. It may be called
// from any goroutine.
func (w *Writer) SigningKey() *checkpoint.Key { return w.published.Load() }

// Close closes the database and releases the lock.
func (w *Writer) Close() error {
	err := w.db.Close()
	w.lock.Release()
	return err
}

// Append writes records in one transaction, and sets the numbers in their
// headers. Either all are in the log or none.
func (w *Writer) Append(records iter.Seq[*record.Prepared]) error {
	return w.Commit(func(next *Head) error {
		if err := w.recordClockStep(next); err != nil {
			return err
		}
		w.rows = w.rows[:0]
		var at moment
		for p := range records {
			// Neighbours that may be packed have one time: a pack has no more.
			if !p.Packable || !at.packable {
				at.time, at.reading = w.now(next)
			}
			at.packable = p.Packable
			row, err := w.chain(next, p, at)
			if err != nil {
				return err
			}
			w.rows = append(w.rows, row)
		}
		err := w.db.InsertRecords(w.rows...)
		clear(w.rows) // the records are the callers'
		return err
	})
}

// Commit runs change in a transaction and makes it durable. The head moves on to
// the state that change leaves only if every step succeeded.
func (w *Writer) Commit(change func(next *Head) error) error {
	if w.broken != nil {
		return w.broken
	}
	next := w.head.clone()
	if err := w.db.Begin(); err != nil {
		return w.rollback(err)
	}
	err := change(&next)
	if err == nil && next.mustSign(&w.head, w.options.CheckpointRecords) {
		err = w.sign(&next, w.key)
	}
	if err == nil {
		err = w.db.Commit()
	}
	if err != nil {
		err = w.rollback(err)
	} else if err = w.checkFiles(); err != nil {
		w.broken = err
	}
	if err != nil {
		w.inDoubt = next
		return err
	}
	w.head = next
	return nil
}

// CommitStep is [Writer.Commit] for a part of an erasure, which appends nothing. It does not
// wait for the disk: what a loss of power undoes, the next start does again.
func (w *Writer) CommitStep(change func() error) error {
	if w.broken != nil {
		return w.broken
	}
	if err := w.db.SyncCommits(false); err != nil {
		return w.db.Wrap("writing", err)
	}
	err := w.Commit(func(*Head) error { return change() })
	if syncErr := w.db.SyncCommits(true); syncErr != nil {
		// An append must not be acknowledged before it is durable.
		syncErr = w.db.Wrap("writing", syncErr)
		if w.broken == nil {
			w.broken, w.inDoubt = syncErr, w.head
		}
		err = errors.Join(err, syncErr)
	}
	return err
}

// mustSign reports whether the transaction that leads from before to h signs. After a
// record that seals the log, and in a log without a checkpoint, it always does: what
// stands there unsigned was appended by somebody else.
func (h *Head) mustSign(before *Head, every int64) bool {
	unsigned := h.Seq - h.Signed
	return unsigned >= every || unsigned > 0 && (h.Signed == 0 || before.Sealed)
}

// rollback undoes a failed transaction. If the failure leaves the contents of
// the file unknown, the writer is broken from here on: after a failed sync, for
// one, the kernel may have dropped the pages, and a retry would succeed without
// writing them.
func (w *Writer) rollback(cause error) error {
	err := w.db.Wrap("writing", cause)
	rollbackErr := w.db.Rollback()
	last, readErr := w.db.LastRecord(context.Background())
	switch auditerr.CodeOf(err) {
	case auditerr.CodeFull, auditerr.CodeBusy, auditerr.CodeReadOnly, auditerr.CodeInvalid:
		// SQLite itself rolls back after some of these, and ROLLBACK then fails.
		// What counts is whether the database ends where the chain does.
		if readErr == nil && last == w.head.Seq {
			return err
		}
	}
	w.broken = err
	return errors.Join(err, rollbackErr, readErr)
}

// Check finds out what happened to the files while nobody wrote: a writer whose
// files are gone is broken from here on. It returns what [Writer.Broken] does.
func (w *Writer) Check() error {
	// Before its first commit the writer has not seen its files yet.
	if w.broken == nil && w.files[0] != nil {
		w.broken = w.checkFiles()
	}
	return w.broken
}

// checkFiles checks that the transaction just committed went into the files that
// the next start will open. SQLite keeps writing into deleted or replaced files
// without noticing.
func (w *Writer) checkFiles() error {
	for i, suffix := range []string{"", "-wal"} {
		name := w.db.Path + suffix
		info, err := os.Stat(name)
		if err == nil && w.files[i] == nil {
			w.files[i] = info
		}
		if err != nil || !os.SameFile(info, w.files[i]) {
			return &auditerr.Error{Code: auditerr.CodeIO, Path: w.db.Path, Err: err,
				Msg:  "the file " + name + " was deleted or replaced while the log was open",
				Hint: "leave the files of an open log alone: put this one back, and the log goes on; without it, restore a backup and start the agent again"}
		}
	}
	return nil
}

// insert chains a record to the head and writes its row.
func (w *Writer) insert(next *Head, p *record.Prepared) error {
	var at moment
	at.time, at.reading = w.now(next)
	row, err := w.chain(next, p, at)
	if err != nil {
		return err
	}
	return w.db.InsertRecords(row)
}

// A moment is the time of a record, and the clock's reading.
type moment struct {
	time, reading int64
	packable      bool // it is that of a record which may be packed
}

// chain makes a record the head, and adds it to the tree. The caller writes its row.
func (w *Writer) chain(next *Head, p *record.Prepared, at moment) (store.Row, error) {
	p.Header.Seq, p.Header.Time = next.Seq+1, at.time
	if at.reading != at.time {
		p.Stamp(at.reading)
	}
	hash := chainhash.Record(&w.scratch, next.Hash, &p.Header)
	next.Seq, next.Time, next.Hash, next.Sealed = p.Header.Seq, p.Header.Time, hash, false
	var err error
	next.Tree.Add(hash, func(level int, position int64, hash tlog.Hash) {
		if err == nil {
			err = w.db.InsertNode(level, position, hash)
		}
	})
	return store.Row{Prepared: p, Hash: hash}, err
}

// InsertOwn appends, within a transaction, a record that the log itself makes. The
// caller signs a record of a reserved kind in the same transaction.
func (w *Writer) InsertOwn(next *Head, kind record.Kind, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var p record.Prepared
	prepare := p.Prepare
	if kind.Reserved() {
		prepare = p.PrepareSealed
	}
	if err := prepare(&record.Record{Kind: kind, Body: text}); err != nil {
		return err
	}
	err = w.insert(next, &p)
	next.Sealed = kind.Reserved()
	return err
}

// Authorise appends the record that allows an erasure and signs it in the same
// transaction. Verification treats an erasure as forged until its authority is
// under a checkpoint, so there must be no moment between the two.
func (w *Writer) Authorise(kind record.Kind, body any) (seq int64, err error) {
	err = w.Commit(func(next *Head) error {
		if err := w.InsertOwn(next, kind, body); err != nil {
			return err
		}
		seq = next.Seq
		return w.sign(next, w.key)
	})
	return seq, err
}

// Stop appends the record of a clean stop, which [record.Prepared.PrepareSealed] has
// prepared, and signs it in the same transaction.
func (w *Writer) Stop(p *record.Prepared) error {
	return w.Commit(func(next *Head) error {
		if err := w.insert(next, p); err != nil {
			return err
		}
		next.Sealed = true
		return w.sign(next, w.key)
	})
}

// Sign signs a checkpoint, unless the newest one covers every record.
func (w *Writer) Sign() error {
	if w.head.Seq == w.head.Signed {
		return nil
	}
	return w.Commit(func(next *Head) error { return w.sign(next, w.key) })
}

// sign adds a checkpoint over all records to the transaction.
func (w *Writer) sign(next *Head, key *checkpoint.Key) error {
	c := checkpoint.Checkpoint{Origin: w.db.Identity.Origin, Size: next.Seq, Root: next.Tree.Root()}
	note, err := checkpoint.Sign(c, key.Signer())
	if err != nil {
		return err
	}
	next.Signed, next.Note = next.Seq, note
	now, _ := w.now(next)
	return w.db.InsertCheckpoint(next.Seq, now, note)
}
