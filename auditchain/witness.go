package auditchain

import (
	"context"
	"errors"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
)

// AddWitness adds a witness to those of [Options]. It is shown the newest
// checkpoint soon.
func (l *Log) AddWitness(w checkpoint.Witness) { l.publisher.add(w) }

// ShowTo shows the newest checkpoint of the log to a witness, and returns it co-signed. It does what the log does by itself with
// the witnesses of [Options], now, and changes no file. The error is the
// witness's, see [checkpoint.Witness], or that of reading the log.
func (r *Reader) ShowTo(ctx context.Context, w checkpoint.Witness) ([]byte, error) {
	note, err := r.newestCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	return r.cosign(ctx, w, note)
}

// newestCheckpoint is the newest one in the database.
func (r *Reader) newestCheckpoint(ctx context.Context) ([]byte, error) {
	var note []byte
	err := r.db.QueryRowContext(ctx, `SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1`).Scan(&note)
	if isNoRows(err) {
		return nil, &Error{Code: CodeNotFound, Path: r.path, Msg: "the log has no checkpoint yet"}
	}
	return note, fault(r.path, "reading the newest checkpoint", err)
}

// Keeper makes this log's owner a witness of other logs, which signs with the
// key of this one, also after that has changed. For store and trust see
// [checkpoint.NewKeeper].
func (l *Log) Keeper(store checkpoint.Store, trust func(origin string) []string) *checkpoint.Keeper {
	return checkpoint.NewRotatingKeeper(l.writer.signingKey.Load, store, trust)
}

// Rotations proves each change of the signing key by [Log.RotateKey], oldest
// first: each proof shows the record that names the new key, under the
// checkpoint that the old one has signed. Who trusts the log's first key can
// follow them to the newest.
func (r *Reader) Rotations(ctx context.Context) ([]*proof.Proof, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT seq, note FROM records JOIN checkpoints ON size = seq WHERE kind = ? ORDER BY seq`, KindCheckpoint)
	if err != nil {
		return nil, fault(r.path, "reading changes of the key", err)
	}
	type change struct {
		seq  int64
		note string
	}
	var changes []change
	for rows.Next() {
		var c change
		if err = rows.Scan(&c.seq, &c.note); err != nil {
			break
		}
		changes = append(changes, c)
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, fault(r.path, "reading changes of the key", err)
	}
	var all []*proof.Proof
	for _, c := range changes {
		p, err := r.proveUnder(ctx, c.seq, c.note, ProveOptions{})
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// EventWitnessConflict is the member event of a lifecycle record which says that
// a witness has seen another history of the log.
const EventWitnessConflict = "witness-conflict"

// newestConflict is the number of the newest such record, or 0.
func (r *Reader) newestConflict(ctx context.Context) (seq int64, err error) {
	err = r.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM records WHERE kind = ? AND body ->> 'event' = ?`,
		KindLifecycle, EventWitnessConflict).Scan(&seq)
	return seq, fault(r.path, "looking for conflicts with witnesses", err)
}
