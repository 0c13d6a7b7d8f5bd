package auditchain

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
	"golang.org/x/mod/sumdb/tlog"
)

// ProveOptions configures [Reader.Prove]. The zero value proves the whole
// record.
type ProveOptions struct {
	// WithoutContent leaves the body and the searchable columns out.
	WithoutContent bool
}

// Prove makes the proof that a record is under a signed checkpoint, to be
// marshalled to a file that package proof checks. It fails with [CodeNotFound]
// when there is no such record and with [CodeInvalid] when no checkpoint covers
// it yet. An erased record is proven without its content.
func (r *Reader) Prove(ctx context.Context, seq int64, options ProveOptions) (*proof.Proof, error) {
	var note string
	err := r.db.QueryRowContext(ctx, `SELECT note FROM checkpoints WHERE size >= ? ORDER BY size DESC LIMIT 1`, seq).Scan(&note)
	if isNoRows(err) {
		if err := r.provenRecord(ctx, seq, options, &proof.Record{}); err != nil {
			return nil, err // there is no such record
		}
		return nil, &Error{Code: CodeInvalid, Path: r.path, Msg: fmt.Sprintf("no checkpoint covers record %d yet", seq),
			Hint: "the agent signs one every few seconds and when it stops; try again"}
	}
	if err != nil {
		return nil, fault(r.path, "reading the newest checkpoint", err)
	}
	return r.proveUnder(ctx, seq, note, options)
}

// proveUnder proves a record under the checkpoint of a note.
func (r *Reader) proveUnder(ctx context.Context, seq int64, note string, options ProveOptions) (*proof.Proof, error) {
	p := &proof.Proof{Format: proof.Format, Path: []tlog.Hash{}, Checkpoint: note}
	if err := r.provenRecord(ctx, seq, options, &p.Record); err != nil {
		return nil, err
	}
	signed, err := checkpoint.Parse(p.Checkpoint)
	if err != nil {
		return nil, &Error{Code: CodeTampered, Path: r.path, Msg: "a stored checkpoint cannot be read", Err: err, Hint: hintTampered}
	}
	tree := &treeReader{ctx: ctx, q: r.db, path: r.path}
	path, err := tlog.ProveRecord(signed.Size, seq-1, tree)
	if err != nil {
		return nil, fault(r.path, "proving a record", err)
	}
	p.Path = append(p.Path, path...)
	if p.Previous = r.identity.genesis(); seq > 1 {
		hashes, err := tree.stored(0, seq-2, 1)
		if err != nil {
			return nil, err
		}
		p.Previous = hashes[0]
	}
	return p, nil
}

// provenRecord reads the record as a proof shows it.
func (r *Reader) provenRecord(ctx context.Context, seq int64, options ProveOptions, out *proof.Record) error {
	var c proof.Content
	var digest []byte
	var peer, capability, side, correlation, session sql.NullString
	err := r.db.QueryRowContext(ctx, `SELECT seq, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest
		FROM records WHERE seq = ?`, seq).
		Scan(&out.Seq, &out.TS, &out.Tenant, &out.Kind, &peer, &capability, &side, &correlation, &session,
			(*[]byte)(&c.Body), &c.Salt, &digest)
	if isNoRows(err) {
		return &Error{Code: CodeNotFound, Path: r.path, Msg: fmt.Sprintf("there is no record %d", seq)}
	}
	if err != nil {
		return fault(r.path, "reading a record", err)
	}
	copy(out.Digest[:], digest)
	if c.Body != nil && !options.WithoutContent {
		c.Peer, c.Capability, c.Side = peer.String, capability.String, side.String
		c.Correlation, c.Session = correlation.String, session.String
		out.Content = &c
	}
	return nil
}
