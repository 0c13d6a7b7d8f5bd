package chain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
	"golang.org/x/mod/sumdb/tlog"
)

// recover loads the head of the chain and checks it, so that the writer never
// signs anything it did not write:
//
//   - the records under a checkpoint have the root that was signed, and none is
//     missing (the tree alone is read, which takes milliseconds);
//   - the records after the newest checkpoint, left by a writer that was killed,
//     verify one by one and obey the rule of [verify.CheckUnsigned]. Only then are
//     they signed;
//   - the records that the log acts on, the newest of each kind that only the log
//     writes, are under that checkpoint with their content.
//
// It also completes an interrupted change of keys. That comes before signing,
// since the checkpoint must carry the key that the chain names, and after the
// checks, since an unsigned record must name no key.
func (w *Writer) recover(ctx context.Context) (Found, error) {
	if err := w.loadHead(ctx); err != nil {
		return Found{}, err
	}
	found := Found{Records: w.head.Seq}
	if err := w.checkSigned(ctx); err != nil {
		return found, err
	}
	found.Unsigned = w.head.Seq - w.head.Signed
	if err := w.checkUnsigned(ctx); err != nil {
		return found, err
	}
	if err := w.checkOwn(ctx); err != nil {
		return found, err
	}
	if err := w.loadKey(ctx); err != nil {
		return found, err
	}
	var err error
	if err = w.restoreFiles(ctx, &found); err != nil {
		return found, err
	}
	if found.KeyChanged, err = w.completeKeyChange(ctx); err != nil {
		return found, err
	}
	return found, w.Sign()
}

// loadHead reads the newest record, the right edge of the tree and the newest
// checkpoint.
func (w *Writer) loadHead(ctx context.Context) error {
	w.head = Head{Hash: w.db.Identity.Genesis()}
	sized := true
	err := w.db.Newest(ctx, func(r *store.Record) {
		w.head.Seq, w.head.Time = r.Seq, r.Time
		sized = len(r.Hash) == len(w.head.Hash)
		copy(w.head.Hash[:], r.Hash)
		w.head.Sealed = record.IsSealed(record.Kind(r.Kind), r.Body)
	})
	if err != nil {
		return err
	}
	if !sized {
		return w.db.Tampered("the newest record has no valid hash", nil)
	}
	if w.head.Tree, err = w.db.Tree(ctx).Frontier(w.head.Seq); err != nil {
		return err
	}
	w.head.Signed, w.head.Note, err = w.db.NewestCheckpoint(ctx)
	return err
}

// checkSigned compares the database with its newest checkpoint and with the one
// in the file beside it. An older copy of the database agrees with itself, but
// not with that file. The newer of the two is where the unsigned records begin: to
// delete checkpoints from the database must not make signed records unsigned ones.
func (w *Writer) checkSigned(ctx context.Context) error {
	file, err := sidecar.ReadCheckpoint(w.db.Path)
	if err != nil {
		return err
	}
	for i, note := range [][]byte{w.head.Note, file} {
		if note == nil {
			continue
		}
		signed, err := w.openNote(ctx, note)
		if err != nil {
			return err
		}
		// The note alone is signed: a larger size beside it would make unsigned records
		// signed ones.
		if i == 0 && signed.Size != w.head.Signed {
			return &auditerr.Error{Code: auditerr.CodeTampered, Path: w.db.Path, Hint: hintTail,
				Msg: fmt.Sprintf("the checkpoint over %d records is stored as one over %d", signed.Size, w.head.Signed)}
		}
		if err := w.checkCovered(ctx, signed); err != nil {
			return err
		}
		if signed.Size > w.head.Signed {
			w.head.Signed, w.head.Note = signed.Size, note
		}
	}
	return nil
}

// openNote checks that a checkpoint of this log is signed by the key that signed at its
// size. The keys come from the chain; anybody could add one to the file of public keys.
func (w *Writer) openNote(ctx context.Context, note []byte) (*checkpoint.Signed, error) {
	shown, err := checkpoint.Parse(string(note))
	if err != nil {
		return nil, w.db.Tampered("a checkpoint of the log is not genuine", err)
	}
	if shown.Origin != w.db.Identity.Origin {
		return nil, &auditerr.Error{Code: auditerr.CodeTampered, Path: w.db.Path,
			Msg:  fmt.Sprintf("its checkpoint is of another log, %s; this one is %s", shown.Origin, w.db.Identity.Origin),
			Hint: "restore the checkpoint file that belongs to this database"}
	}
	signers, err := w.signersOf(ctx, shown.Size)
	if err != nil {
		return nil, err
	}
	keys, err := checkpoint.NewKeys(signers...)
	if err != nil {
		return nil, w.db.Tampered("the record of a signing key cannot be read", err)
	}
	signed, err := checkpoint.Open(note, keys)
	if err != nil {
		return nil, w.db.Tampered("a checkpoint of the log is not genuine", err)
	}
	return signed, nil
}

// signersOf returns the key that may have signed a checkpoint of a size. Of a checkpoint
// over more than the log has, which proves that the database is an old copy, the log may
// not know the key any more: then all in the file of public keys count. Such a
// checkpoint is never accepted.
func (w *Writer) signersOf(ctx context.Context, size int64) ([]string, error) {
	if size > w.head.Seq {
		return sidecar.ReadPublicKeys(w.db.Path)
	}
	change, err := w.keyChange(ctx, size)
	if change.seq == size && change.Event == record.KeyRotated {
		return []string{change.Previous}, err // which signs the record that names its successor
	}
	return []string{change.Key}, err
}

// checkCovered compares the tree with one signed checkpoint.
func (w *Writer) checkCovered(ctx context.Context, signed *checkpoint.Signed) error {
	if signed.Size > w.head.Seq {
		return &auditerr.Error{Code: auditerr.CodeRollback, Path: w.db.Path,
			Msg:  fmt.Sprintf("the log ends at record %d, but a signed checkpoint covers %d", w.head.Seq, signed.Size),
			Hint: "the database is an old copy, was cut, or lost its -wal file: restore the newest one"}
	}
	root, err := w.db.Tree(ctx).Root(signed.Size)
	if err != nil {
		return err
	}
	if root != signed.Root {
		return w.db.Tampered(fmt.Sprintf("the first %d records are not those that were signed", signed.Size), nil)
	}
	return nil
}

// checkUnsigned checks the records after the newest checkpoint.
func (w *Writer) checkUnsigned(ctx context.Context) error {
	fault, err := verify.CheckUnsigned(ctx, &w.db.DB, w.head.Signed, w.head.Seq)
	if err != nil {
		return err
	}
	if fault != nil {
		which := "the records after the newest checkpoint"
		if fault.Class == verify.RecordAdded && fault.Seq <= w.head.Signed {
			which = "the newest signed records"
		}
		return &auditerr.Error{Code: auditerr.CodeTampered, Path: w.db.Path, Msg: which + " cannot be believed: " + fault.String(), Hint: hintTail}
	}
	return nil
}

// hintTail is the way on for an operator whose log has a tail that nobody vouches for.
const hintTail = "nothing was signed or done; find out who wrote to the file, then `agentd audit quarantine` moves these records into a copy and lets the agent run again"

// checkOwn checks that the records the log acts on are the signed ones: the newest
// redaction and prune records, which the next step completes, and the newest change of
// keys. Their hashes are proven under the newest checkpoint. The rest of the signed
// records is for verification to check.
func (w *Writer) checkOwn(ctx context.Context) error {
	for _, kind := range []record.Kind{record.KindRedaction, record.KindPrune, record.KindCheckpoint} {
		if _, _, err := w.Own(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// Own returns the number and the body of the newest record of a kind that only the log
// writes, 0 if there is none. It fails with [auditerr.CodeTampered] if that is not a record
// that was signed: anybody can write to the file, also while the log is open.
func (w *Writer) Own(ctx context.Context, kind record.Kind) (seq int64, body []byte, err error) {
	var hash []byte
	err = w.db.QueryRowContext(ctx, `SELECT seq, hash, body FROM records WHERE kind = ? ORDER BY seq DESC LIMIT 1`, kind).Scan(&seq, &hash, &body)
	if store.IsNoRows(err) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, w.db.Wrap("reading the newest "+string(kind)+" record", err)
	}
	fault, err := verify.FirstFault(ctx, &w.db.DB, seq, seq)
	if err != nil {
		return 0, nil, err
	}
	if fault != nil || body == nil || len(hash) != tlog.HashSize {
		return 0, nil, w.db.Tampered(fmt.Sprintf("record %d, of kind %s, is not the one that was written", seq, kind), nil)
	}
	return seq, body, w.checkIncluded(ctx, seq, tlog.Hash(hash))
}

// checkIncluded proves that the newest checkpoint covers a record with a hash.
func (w *Writer) checkIncluded(ctx context.Context, seq int64, hash tlog.Hash) error {
	signed, err := checkpoint.Parse(string(w.head.Note))
	if err != nil {
		return w.db.Tampered("no checkpoint covers the log's own records", err)
	}
	if seq > signed.Size {
		return w.db.Tampered(fmt.Sprintf("record %d is under no checkpoint, and the log signs a record of its kind as it writes it", seq), nil)
	}
	path, err := tlog.ProveRecord(signed.Size, seq-1, w.db.Tree(ctx))
	if err != nil {
		return w.db.Wrap("proving a record", err)
	}
	if err := tlog.CheckRecord(path, signed.Size, signed.Root, seq-1, hash); err != nil {
		return w.db.Tampered(fmt.Sprintf("record %d is not the one that was signed", seq), err)
	}
	return nil
}

// restoreFiles finds out which files are missing beside the database, as after a
// backup of it alone was restored, and writes the public keys again: the chain names
// them. The checkpoint is published again by itself.
func (w *Writer) restoreFiles(ctx context.Context, found *Found) error {
	path := w.db.Path
	missing := func(suffix string) bool {
		_, err := os.Stat(path + suffix)
		return errors.Is(err, fs.ErrNotExist)
	}
	found.KeysMissing = missing(sidecar.PublicSuffix)
	found.CheckpointMissing = w.head.Signed > 0 && missing(sidecar.CheckpointSuffix)
	if !found.KeysMissing {
		return nil
	}
	keys, err := w.allKeys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := sidecar.AddPublicKey(path, key); err != nil {
			return err
		}
	}
	return nil
}
