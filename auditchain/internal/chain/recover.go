package chain

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// recover loads the head of the chain and checks it, so that the writer never
// signs anything it did not write:
//
//   - the records under a checkpoint have the root that was signed, and none is
//     missing (the tree alone is read, which takes milliseconds);
//   - the records after the newest checkpoint, left by a writer that was killed,
//     verify one by one. Only then are they signed.
//
// It also completes an interrupted change of keys. That comes before signing,
// since the checkpoint must carry the key that the chain names.
func (w *Writer) recover(ctx context.Context) (Found, error) {
	if err := w.loadHead(ctx); err != nil {
		return Found{}, err
	}
	found := Found{Records: w.head.Seq, Unsigned: w.head.Seq - w.head.Signed}
	if err := w.checkSigned(ctx); err != nil {
		return found, err
	}
	if err := w.checkUnsigned(ctx); err != nil {
		return found, err
	}
	var err error
	if found.KeyChanged, err = w.completeKeyChange(ctx); err != nil {
		return found, err
	}
	return found, w.Sign()
}

// loadHead reads the newest record, the right edge of the tree and the newest
// checkpoint.
func (w *Writer) loadHead(ctx context.Context) error {
	w.head = Head{Hash: w.db.Identity.Genesis()}
	var hash []byte
	err := w.db.QueryRowContext(ctx, `SELECT seq, ts, hash FROM records ORDER BY seq DESC LIMIT 1`).
		Scan(&w.head.Seq, &w.head.Time, &hash)
	if err != nil && !store.IsNoRows(err) {
		return w.db.Wrap("reading the newest record", err)
	}
	if err == nil && copy(w.head.Hash[:], hash) != len(w.head.Hash) {
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
// not with that file.
func (w *Writer) checkSigned(ctx context.Context) error {
	path := w.db.Path
	public, err := sidecar.ReadPublicKeys(path)
	if err != nil {
		return err
	}
	keys, err := checkpoint.NewKeys(append(public, w.db.Identity.FirstKey)...)
	if err != nil {
		return &auditerr.Error{Code: auditerr.CodeKeyUnsafe, Path: path, Msg: "the file of public keys", Err: err,
			Hint: "restore " + path + sidecar.PublicSuffix}
	}
	file, err := sidecar.ReadCheckpoint(path)
	if err != nil {
		return err
	}
	for _, note := range [][]byte{w.head.Note, file} {
		if note == nil {
			continue
		}
		signed, err := checkpoint.Open(note, keys)
		if err != nil {
			return w.db.Tampered("a checkpoint of the log is not genuine", err)
		}
		if err := w.checkCovered(ctx, signed); err != nil {
			return err
		}
	}
	return nil
}

// checkCovered compares the tree with one signed checkpoint.
func (w *Writer) checkCovered(ctx context.Context, signed *checkpoint.Signed) error {
	if signed.Origin != w.db.Identity.Origin {
		return &auditerr.Error{Code: auditerr.CodeTampered, Path: w.db.Path,
			Msg:  fmt.Sprintf("its checkpoint is of another log, %s; this one is %s", signed.Origin, w.db.Identity.Origin),
			Hint: "restore the checkpoint file that belongs to this database"}
	}
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

// checkUnsigned verifies the records after the newest checkpoint.
func (w *Writer) checkUnsigned(ctx context.Context) error {
	fault, err := verify.FirstFault(ctx, &w.db.DB, w.head.Signed+1, w.head.Seq)
	if err != nil {
		return err
	}
	if fault != nil {
		return w.db.Tampered("an unsigned record does not verify: "+fault.String(), nil)
	}
	return nil
}
