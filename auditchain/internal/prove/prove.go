package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/proof"
	"golang.org/x/mod/sumdb/tlog"
)

// Record proves that a record is under the newest checkpoint. Without content,
// the proof shows only the digest of body and columns.
func Record(ctx context.Context, db *store.DB, seq int64, content bool) (*proof.Proof, error) {
	size, note, err := db.NewestCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	if size < seq {
		if err := readRecord(ctx, db, seq, content, &proof.Record{}); err != nil {
			return nil, err // there is no such record
		}
		return nil, &auditerr.Error{Code: auditerr.CodeInvalid, Path: db.Path, Msg: fmt.Sprintf("no checkpoint covers record %d yet", seq),
			Hint: "the agent signs one every few seconds and when it stops; try again"}
	}
	return under(ctx, db, seq, note, content)
}

// under proves a record under the checkpoint of a note.
func under(ctx context.Context, db *store.DB, seq int64, note []byte, content bool) (*proof.Proof, error) {
	p := &proof.Proof{Format: proof.Format, Path: []tlog.Hash{}, Checkpoint: string(note)}
	if err := readRecord(ctx, db, seq, content, &p.Record); err != nil {
		return nil, err
	}
	signed, err := checkpoint.Parse(p.Checkpoint)
	if err != nil {
		return nil, db.Tampered("a stored checkpoint cannot be read", err)
	}
	tree := db.Tree(ctx)
	path, err := tlog.ProveRecord(signed.Size, seq-1, tree)
	if err != nil {
		return nil, db.Wrap("proving a record", err)
	}
	p.Path = append(p.Path, path...)
	if p.Previous = db.Identity.Genesis(); seq > 1 {
		if p.Previous, err = tree.Leaf(seq - 1); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readRecord reads the record as a proof shows it.
func readRecord(ctx context.Context, db *store.DB, seq int64, content bool, out *proof.Record) error {
	return db.Record(ctx, seq, func(r *store.Record) {
		out.Seq, out.TS, out.Tenant, out.Kind = r.Seq, r.Time, string(r.Tenant), string(r.Kind)
		copy(out.Digest[:], r.Digest)
		if r.Body != nil && content {
			out.Content = &proof.Content{
				Peer: string(r.Peer), Capability: string(r.Capability), Side: string(r.Side),
				Correlation: string(r.Correlation), Session: string(r.Session),
				Body: bytes.Clone(r.Body), Salt: bytes.Clone(r.Salt),
			}
		}
	})
}

// Rotations proves each change of the signing key that the previous key signed,
// oldest first. Such a proof shows the record that names the new key, under the
// checkpoint that the old key signed over it.
func Rotations(ctx context.Context, db *store.DB) ([]*proof.Proof, error) {
	changes, err := signedKeyChanges(ctx, db)
	if err != nil {
		return nil, db.Wrap("reading changes of the key", err)
	}
	var all []*proof.Proof
	for _, c := range changes {
		p, err := under(ctx, db, c.seq, c.note, true)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

type keyChange struct {
	seq  int64
	note []byte
}

// signedKeyChanges finds the changes of keys, each with the checkpoint that was
// signed in the same transaction and therefore ends with it.
func signedKeyChanges(ctx context.Context, db *store.DB) (changes []keyChange, err error) {
	rows, err := db.QueryContext(ctx, `SELECT seq, note FROM records JOIN checkpoints ON size = seq WHERE kind = ? ORDER BY seq`, record.KindCheckpoint)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c keyChange
		if err := rows.Scan(&c.seq, &c.note); err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, rows.Err()
}

// Growth proves that the log of size now is the one of size old with records
// appended (RFC 6962 section 2.1.2). The proof is empty if there is nothing to
// prove: old is 0, or not smaller than now.
func Growth(ctx context.Context, db *store.DB, old, now int64) (tlog.TreeProof, error) {
	if old == 0 || old >= now {
		return nil, nil
	}
	p, err := tlog.ProveTree(now, old, db.Tree(ctx))
	return p, db.Wrap("proving growth", err)
}
