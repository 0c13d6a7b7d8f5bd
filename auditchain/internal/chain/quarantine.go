package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
	"golang.org/x/mod/sumdb/tlog"
)

// quarantineMark is in the name of the copy that [Quarantine] leaves.
const quarantineMark = ".quarantine-"

// A Quarantined is the outcome of [Quarantine].
type Quarantined struct {
	// Records counts the rows that were taken out, 0 if every row could be believed.
	Records int64
	// Signed is the number of the last record that stays.
	Signed int64
	// Copy is the database as it was found, with SHA256 as its hash, or "".
	Copy, SHA256 string
}

// A quarantineBody is the body of the lifecycle record about a quarantine.
type quarantineBody struct {
	Event string `json:"event"` // always "quarantined"
	// Records counts the rows that were taken out. They followed record Signed, or
	// were outside the numbering.
	Records int64 `json:"records"`
	Signed  int64 `json:"signed"`
	// Copy is the name of the file that has them, SHA256 its hash.
	Copy   string `json:"copy"`
	SHA256 string `json:"sha256"`
	// Reason is the operator's.
	Reason string `json:"reason"`
	// Actor is who asked for it.
	Actor *record.Actor `json:"actor,omitempty"`
}

// Quarantine makes a log usable again whose unsigned records cannot be believed. It
// copies the database as it is, takes out of it whatever no checkpoint covers,
// builds the indexes anew, and records that, signed. It changes nothing in a log that
// [Open] accepts, and fails for one whose signed records are not those that were
// signed: only a backup mends that.
func Quarantine(ctx context.Context, path, reason string, options Options, connect store.Connect) (q Quarantined, err error) {
	path, err = store.Resolve(path)
	if err != nil {
		return q, err
	}
	if _, err := os.Stat(path); err != nil {
		return q, missing(path, err)
	}
	lock, err := sidecar.Lock(path)
	if err != nil {
		return q, err
	}
	db, err := store.OpenWriter(ctx, path, connect)
	if err != nil {
		lock.Release()
		return q, err
	}
	w := &Writer{db: db, lock: lock, options: options, connect: connect}
	defer func() { err = errors.Join(err, w.Close()) }()
	if _, err := w.load(ctx); err != nil {
		return q, err
	}
	// What is unsigned may be such that no head can be loaded.
	if w.head.Seq, err = db.LastRecord(ctx); err != nil {
		return q, err
	}
	newest, err := w.newestOwn(ctx)
	if err != nil {
		return q, err
	}
	if err := w.removeForged(ctx, newest, &q); err != nil {
		return q, err
	}
	if err := w.findBase(ctx, newest.Size); err != nil {
		return q, err
	}
	q.Signed = w.head.Signed
	believed, err := w.believesTail(ctx)
	if err != nil || believed && q.Records == 0 {
		return q, errors.Join(err, db.RebuildIndexes())
	}
	if err := w.keepEvidence(&q); err != nil {
		return q, err
	}
	if err := w.removeUnsigned(ctx, &q); err != nil {
		return q, err
	}
	if err := w.checkOwn(ctx); err != nil {
		return q, err
	}
	body, err := json.Marshal(quarantineBody{
		Event: "quarantined", Records: q.Records, Signed: q.Signed, Copy: filepath.Base(q.Copy), SHA256: q.SHA256, Reason: reason, Actor: record.ActorOf(ctx),
	})
	if err != nil {
		return q, w.db.Wrap("recording the quarantine", err)
	}
	var seal record.Prepared
	if err := seal.PrepareSealed(&record.Record{Kind: record.KindLifecycle, Body: body}); err != nil {
		return q, w.db.Wrap("recording the quarantine", err)
	}
	return q, w.Stop(&seal)
}

// newestOwn returns the newest checkpoint that is signed with a key that the owner holds, whichever
// the chain names: a forged change of keys must not make it one that is passed over, nor one of the
// forger's genuine.
func (w *Writer) newestOwn(ctx context.Context) (newest checkpoint.Signed, err error) {
	notes, err := w.notes(ctx)
	if err != nil {
		return newest, err
	}
	var held []string
	for _, suffix := range []string{sidecar.KeySuffix, sidecar.NextKeySuffix} {
		if key, err := sidecar.ReadKey(w.db.Path, suffix); err == nil {
			held = append(held, key.Verifier())
		}
	}
	keys, err := checkpoint.NewKeys(held...)
	if err != nil {
		return newest, w.db.Wrap("reading the signing key", err)
	}
	end := w.head.Seq
	for _, note := range notes {
		signed, err := checkpoint.Open(note, keys)
		if err != nil { // or with the key before that
			if signed, err = w.openNote(ctx, note); err == nil {
				w.head.Seq = signed.Size
				err = w.loadKey(ctx)
				w.head.Seq = end
			}
			if err != nil || w.key == nil {
				continue
			}
		}
		if signed.Origin == w.db.Identity.Origin && signed.Size > newest.Size {
			newest = *signed
		}
	}
	return newest, nil
}

// removeForged takes out packs and rows that claim numbers of signed records. Nobody can tell
// what is signed while they are there.
func (w *Writer) removeForged(ctx context.Context, newest checkpoint.Signed, q *Quarantined) error {
	if err := w.removeAcross(ctx, newest, q); err != nil {
		return err
	}
	for {
		// The newest first: the proof of a record needs those at the end of the tree.
		seq, err := verify.ClaimedTwice(ctx, &w.db.DB, newest.Size)
		if err != nil {
			return err
		}
		if seq == 0 {
			w.head.Seq, err = w.db.LastRecord(ctx)
			return err
		}
		if err := w.keepEvidence(q); err != nil {
			return err
		}
		if err := w.removeClaim(ctx, newest, seq, q); err != nil {
			return err
		}
	}
}

// removeClaim takes out the pack or the row without which the record of a number is the one
// that was signed.
func (w *Writer) removeClaim(ctx context.Context, newest checkpoint.Signed, seq int64, q *Quarantined) error {
	packs, err := w.db.PacksWith(seq)
	if err != nil {
		return err
	}
	for _, p := range packs {
		// What one hash says is not enough: anybody can copy it, and a pack has more records.
		check := func() error {
			last := min(p.Last, newest.Size)
			fault, err := verify.FirstErasedFault(ctx, &w.db.DB, max(1, p.First), last)
			if err == nil && fault != nil {
				err = w.db.Tampered(fault.String(), nil)
			}
			return errors.Join(err, w.checkLeaf(ctx, newest, last))
		}
		if count, err := w.db.RemovePacks([]int64{p.First}, check); err == nil {
			q.Records += count
			return nil
		}
	}
	count, err := w.db.RemoveRow(seq, func() error { return w.checkLeaf(ctx, newest, seq) })
	if q.Records += count; err != nil || count == 0 {
		return w.db.Tampered(fmt.Sprintf("record %d is there more than once, and none of them is the one that was signed", seq), err)
	}
	return nil
}

// checkLeaf proves that a checkpoint covers the hash that the log has for a record.
func (w *Writer) checkLeaf(ctx context.Context, signed checkpoint.Signed, seq int64) error {
	path, err := tlog.ProveRecord(signed.Size, seq-1, w.db.Tree(ctx))
	if err != nil {
		return err
	}
	leaf, err := w.db.Tree(ctx).Leaf(seq)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(path, signed.Size, signed.Root, seq-1, leaf)
}

// removeAcross takes out packs with records before and after the end of the newest genuine
// checkpoint: one signs whole transactions, so the log has not written them. What is signed has
// to be there without them.
func (w *Writer) removeAcross(ctx context.Context, newest checkpoint.Signed, q *Quarantined) error {
	packs, err := w.db.PacksAcross(newest.Size)
	if err != nil || len(packs) == 0 {
		return err
	}
	if err := w.keepEvidence(q); err != nil {
		return err
	}
	q.Records, err = w.db.RemovePacks(packs, func() error { return w.checkCovered(ctx, &newest) })
	if err != nil {
		return err
	}
	w.head.Seq, err = w.db.LastRecord(ctx)
	return err
}

// believesTail reports whether the records after the newest genuine checkpoint, which may be
// older than the newest one, are such that a start accepts them, and that checkpoint is the
// newest one stored.
func (w *Writer) believesTail(ctx context.Context) (bool, error) {
	stored, misplaced, err := w.misplacedCheckpoint(ctx)
	if err != nil || misplaced || stored > w.head.Signed {
		return false, err
	}
	fault, err := verify.CheckUnsigned(ctx, &w.db.DB, w.head.Signed, w.head.Seq)
	if err != nil || fault != nil {
		return false, err
	}
	_, err = w.db.Tree(ctx).Frontier(w.head.Seq)
	if auditerr.CodeOf(err) == auditerr.CodeTampered {
		return false, nil
	}
	return err == nil, err
}

// misplacedCheckpoint returns the size under which the newest checkpoint is stored, and whether it is
// one over another number of records.
func (w *Writer) misplacedCheckpoint(ctx context.Context) (stored int64, misplaced bool, err error) {
	stored, note, err := w.db.NewestCheckpoint(ctx)
	if err != nil || note == nil {
		return 0, false, err
	}
	parsed, err := checkpoint.Parse(string(note))
	return stored, err != nil || parsed.Size != stored, nil
}

// removeMisplaced removes the newest checkpoints as long as they are misplaced: a start refuses them.
func (w *Writer) removeMisplaced(ctx context.Context) error {
	for {
		stored, misplaced, err := w.misplacedCheckpoint(ctx)
		if err != nil || !misplaced {
			return err
		}
		if err := w.db.Exec(`DELETE FROM checkpoints WHERE size = ?`, stored); err != nil {
			return w.db.Wrap("removing a checkpoint", err)
		}
	}
}

// notes returns all checkpoints of the log, genuine or not.
func (w *Writer) notes(ctx context.Context) ([][]byte, error) {
	notes, err := w.db.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	file, err := sidecar.ReadCheckpoint(w.db.Path)
	if file != nil {
		notes = append(notes, file)
	}
	return notes, err
}

// findBase sets the head's checkpoint to the newest one that is genuine under the key
// that the owner holds, and loads that key. Stored checkpoints that are not genuine are
// passed over; one that is, and covers other records than those in the database, is an
// error. So is an older one than that over own records, which the owner's key has signed.
func (w *Writer) findBase(ctx context.Context, own int64) error {
	notes, err := w.notes(ctx)
	if err != nil {
		return err
	}
	end := w.head.Seq
	w.head.Signed, w.head.Note = 0, nil
	for _, note := range notes {
		signed, err := w.openNote(ctx, note)
		if err != nil || signed.Size <= w.head.Signed {
			continue
		}
		// The key in force at that size is the one that is held, or a forger's.
		if w.head.Seq = signed.Size; w.loadKey(ctx) != nil || w.key == nil {
			w.head.Seq = end
			continue
		}
		if w.head.Seq = end; w.checkCovered(ctx, signed) != nil {
			return w.checkCovered(ctx, signed)
		}
		w.head.Signed, w.head.Note = signed.Size, note
	}
	if w.head.Signed == 0 {
		return &auditerr.Error{Code: auditerr.CodeTampered, Path: w.db.Path, Msg: "no checkpoint is signed with the log's key: nothing of it can be believed",
			Hint: "keep the files as evidence and restore a backup, or move them away to begin a new log"}
	}
	if w.head.Signed < own {
		return w.db.Tampered(fmt.Sprintf("the log's key has signed the first %d records, and the chain names another one there", own), nil)
	}
	w.head.Seq = w.head.Signed
	err = w.loadKey(ctx)
	w.head.Seq = end
	return err
}

// keepEvidence copies the database as it is beside itself, readable by its owner alone, and
// sets the name and the hash of the copy; once.
func (w *Writer) keepEvidence(q *Quarantined) (err error) {
	if q.Copy != "" {
		return nil
	}
	wrap := func(err error) error {
		return auditerr.Wrap(w.db.Path, "copying the database before it is changed", err)
	}
	name := w.db.Path + quarantineMark + w.options.Now().UTC().Format("20060102T150405.000Z")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return wrap(err)
	}
	defer func() { err = errors.Join(err, wrap(file.Close())) }()
	if err := w.db.Exec(`VACUUM INTO ?`, name); err != nil { // into the file that is there and empty
		return wrap(err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return wrap(err)
	}
	if err := file.Sync(); err != nil {
		return wrap(err)
	}
	q.Copy, q.SHA256 = name, hex.EncodeToString(h.Sum(nil))
	return sidecar.Sync(w.db.Path)
}

// removeUnsigned takes the rows that no checkpoint covers out of every table, and loads
// the head that is left.
func (w *Writer) removeUnsigned(ctx context.Context, q *Quarantined) error {
	signed, note := w.head.Signed, w.head.Note
	count, err := w.db.RemoveAfter(signed)
	q.Records += count
	if err != nil {
		return err
	}
	if err := w.removeMisplaced(ctx); err != nil {
		return err
	}
	if err := w.loadHead(ctx); err != nil {
		return err
	}
	if w.head.Seq != signed {
		return w.db.Tampered(fmt.Sprintf("the log ends at record %d, but a signed checkpoint covers %d", w.head.Seq, signed), nil)
	}
	w.head.Signed, w.head.Note = signed, note
	parsed, err := checkpoint.Parse(string(note))
	if err != nil || parsed.Root != w.head.Tree.Root() {
		return w.db.Tampered(fmt.Sprintf("the first %d records are not those that were signed", signed), err)
	}
	return w.db.RebuildIndexes()
}
