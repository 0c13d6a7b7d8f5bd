package auditchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/prove"
	"github.com/agentd/agentd/auditchain/internal/publish"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
	"github.com/agentd/agentd/auditchain/proof"
	"golang.org/x/mod/sumdb/tlog"
)

type (
	// A Filter chooses records. The zero value chooses all, oldest first. A
	// record must match every field that is set.
	Filter = query.Filter
	// An Order is the direction of a query.
	Order = query.Order
	// Stats describes a log.
	Stats = query.Stats
	// A Count is the number of records with one value.
	Count = query.Count
)

// The directions of a query, by sequence number.
const (
	OldestFirst = query.OldestFirst
	NewestFirst = query.NewestFirst
)

// EventWitnessConflict is the member event of a lifecycle record which reports
// that a witness has seen another history of the log.
const EventWitnessConflict = query.EventWitnessConflict

// A Reader reads a log, whether or not it is being written at the same time. It
// changes no record, and its methods are safe for concurrent use. SQLite may
// leave the files -wal and -shm beside a database that was only read.
type Reader struct{ db *store.Reader }

// OpenReader opens the log at path for reading. It never creates a file: a
// missing one is an [*Error] with [CodeNotFound].
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Code: CodeNotFound, Path: path, Msg: "there is no such database",
			Hint: "check the path; an agent creates its log when it first runs"}
	}
	resolved, err := store.Resolve(path)
	if err != nil {
		return nil, err
	}
	db, err := store.OpenReader(ctx, resolved, store.SQLite)
	if err != nil {
		return nil, err
	}
	return &Reader{db: db}, nil
}

// Close closes the log for reading.
func (r *Reader) Close() error { return r.db.Close() }

// Path returns the database file.
func (r *Reader) Path() string { return r.db.Path }

// Origin returns the log's name, which its checkpoints carry.
func (r *Reader) Origin() string { return r.db.Identity.Origin }

// PublicKeys returns the verifier keys in the file beside the database, oldest
// first.
func (r *Reader) PublicKeys() ([]string, error) { return sidecar.ReadPublicKeys(r.db.Path) }

// PublicKeysOf returns the verifier keys in the file beside the database at path, oldest
// first, none if there is no such file.
func PublicKeysOf(path string) ([]string, error) { return sidecar.ReadPublicKeys(path) }

// Checkpoint returns the newest signed checkpoint from the file beside the
// database, or nil if there is none yet.
func (r *Reader) Checkpoint() ([]byte, error) { return sidecar.ReadCheckpoint(r.db.Path) }

// Query yields the records that the filter chooses. It reads in pages, each a
// short transaction of its own, so that a slow consumer does not hold up the
// writer. An error is yielded last.
func (r *Reader) Query(ctx context.Context, filter Filter) iter.Seq2[Entry, error] {
	return query.Run(ctx, &r.db.DB, filter)
}

// Get returns the record of one number, or an [*Error] with [CodeNotFound].
func (r *Reader) Get(ctx context.Context, seq int64) (Entry, error) {
	return query.Get(ctx, &r.db.DB, seq)
}

// Follow yields the records that the filter chooses, oldest first, and then those
// that are appended, until the context is done. With a limit, it begins with that
// many of the newest records. Filter.Order is ignored.
//
// The end of the context ends the sequence without an error.
func (r *Reader) Follow(ctx context.Context, filter Filter) iter.Seq2[Entry, error] {
	return query.Follow(ctx, r.db, filter)
}

// Stats counts the contents of the log. It reads indexes, not the records.
func (r *Reader) Stats(ctx context.Context) (*Stats, error) { return query.ReadStats(ctx, &r.db.DB) }

// Hash returns the hash of a record, which remains if the record is pruned. It
// fails with [CodeNotFound] if the log has no record of that number yet.
func (r *Reader) Hash(ctx context.Context, seq int64) (tlog.Hash, error) {
	last, err := r.db.LastRecord(ctx)
	if err != nil {
		return tlog.Hash{}, err
	}
	if seq < 1 || seq > last {
		return tlog.Hash{}, &Error{Code: CodeNotFound, Path: r.db.Path, Msg: fmt.Sprintf("there is no record %d", seq)}
	}
	return r.db.Tree(ctx).Leaf(seq)
}

// CountPruned returns the number of removed records after that of the given
// number.
func (r *Reader) CountPruned(ctx context.Context, after int64) (int64, error) {
	return r.db.CountPruned(ctx, after)
}

// LastSeq returns the number of the newest record, 0 in an empty log.
func (r *Reader) LastSeq(ctx context.Context) (int64, error) { return r.db.LastRecord(ctx) }

// CountErased returns how many records are without their content or removed, which grows
// while [Log.Redact] or [Log.Prune] is at work, here or in the agent that has the log open.
func (r *Reader) CountErased(ctx context.Context) (int64, error) { return r.db.CountErased(ctx) }

type (
	// VerifyOptions configures [Reader.Verify]. The zero value verifies the whole
	// log against the public keys beside it.
	VerifyOptions = verify.Options
	// A VerifyState is how far a verification has come that was stopped.
	VerifyState = verify.State
	// A Report is the outcome of [Reader.Verify].
	Report = verify.Report
	// A Fault is one contradiction in a log.
	Fault = verify.Fault
	// A FaultClass is the way in which a log contradicts itself or what was
	// signed. The set is closed; its text, such as "record-altered", is stable.
	FaultClass = verify.Class
)

// FaultSchemaAltered is the class of a log whose tables were changed, which may be why it
// cannot be opened for reading.
const FaultSchemaAltered = verify.SchemaAltered

// Verify recomputes every hash of the log, compares the result with every signed
// checkpoint it can get, and reports the faults. It reads in pages and in
// constant memory, and may run while the log is written to.
//
// The error is for what prevented the verification; tampering is in the report.
func (r *Reader) Verify(ctx context.Context, options VerifyOptions) (*Report, error) {
	return verify.Run(ctx, &r.db.DB, options)
}

// ProveOptions configures [Reader.Prove]. The zero value proves the whole
// record.
type ProveOptions struct {
	// WithoutContent leaves the body and the searchable columns out.
	WithoutContent bool
}

// Prove returns the proof that a record is under a signed checkpoint, to be
// marshalled to a file that package proof checks. It fails with [CodeNotFound] if
// there is no such record and with [CodeInvalid] if no checkpoint covers it yet.
// An erased record is proven without its content.
func (r *Reader) Prove(ctx context.Context, seq int64, options ProveOptions) (*proof.Proof, error) {
	return prove.Record(ctx, &r.db.DB, seq, !options.WithoutContent)
}

// Rotations proves each change of the signing key by [Log.RotateKey], oldest
// first: each proof shows the record that names the new key, under the checkpoint
// that the old one has signed. Whoever trusts the log's first key can follow them
// to the newest.
func (r *Reader) Rotations(ctx context.Context) ([]*proof.Proof, error) {
	return prove.Rotations(ctx, &r.db.DB)
}

// ShowTo shows the newest checkpoint of the log to a witness, and returns it
// co-signed. An open [Log] does this by itself for the witnesses of [Options];
// ShowTo does it now, and changes no file. The error is the witness's, see
// [checkpoint.Witness], or that of reading the log.
func (r *Reader) ShowTo(ctx context.Context, w checkpoint.Witness) ([]byte, error) {
	return publish.CosignNewest(ctx, &r.db.DB, w)
}
