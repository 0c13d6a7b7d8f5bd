package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/merkle"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

// Run verifies the log. It may run while the log is written to: it checks the
// records that were there when it began, and those appended meanwhile if they allow an
// erasure that it has met. The error is for what prevented the verification, which is
// [auditerr.CodeBusy] where such erasures never end; tampering is in the report.
func Run(ctx context.Context, db *store.DB, options Options) (*Report, error) {
	v, err := newVerifier(ctx, db, options)
	if err != nil {
		return nil, err
	}
	err = v.run(ctx)
	known := db.StillKnown(ctx)
	if auditerr.CodeOf(known) == auditerr.CodeVersion {
		return nil, known // a newer program has taken the log over, and what seems missing is there
	}
	if err == nil {
		err = known
	}
	if err != nil {
		if ctx.Err() != nil && v.state != nil {
			options.Stopped(v.state)
		}
		if v.schemaAltered && auditerr.BadStatement(err) {
			return &v.report, nil // it needs what the altered schema no longer has
		}
		if code := auditerr.CodeOf(err); code != auditerr.CodeCorrupt && code != auditerr.CodeTampered {
			return nil, err
		}
		// The database cannot be read any further, which is a fault of the log
		// and not of the verifier.
		v.add(Fault{Class: Unreadable, Seq: v.tree.Size() + 1, Detail: err.Error()})
	}
	return &v.report, nil
}

// A verifier is the state of one Run.
type verifier struct {
	db      *store.DB
	options Options
	report  Report
	// trusted starts with the auditor's keys and grows with each change of keys
	// that one of them signed.
	trusted *checkpoint.Keys
	// claimed are trusted and every successor that the chain names, proven or not.
	claimed *checkpoint.Keys
	// witnessKeys are those of the options.
	witnessKeys *checkpoint.Keys
	// keyless is true where no key is trusted because the file of public keys is
	// missing or empty; keylessSaid, once that is reported.
	keyless, keylessSaid bool
	// changes are changes of keys that no checkpoint has covered yet.
	changes []seenKeyChange
	tree    merkle.Frontier
	chain   chain
	// given are the keys that the run began with, trustedKeys all in trusted, and state is
	// where a run could continue.
	given, trustedKeys []string
	state              *State
	// schemaAltered is true where a fault of the schema has been reported.
	schemaAltered bool
	// treeLost is true once a hash is unknown: no root can be computed any more.
	treeLost bool
	// outside are the signed tree heads from outside the database, by size.
	outside []signedHead
	// stored is the next row of the table checkpoints to compare with; lastStored
	// is the size of the last one.
	stored     storedHead
	lastStored int64
	erasures   *erasures
	// indexes is nil where the indexes are left out.
	indexes *indexCheck
	// unsignedFaults counts the faults of records since the last good checkpoint.
	// A checkpoint that fails after them is a consequence, not a fault of its own.
	unsignedFaults int64
	err            error // of a statement inside a callback
}

// newVerifier gathers what the records are compared with.
func newVerifier(ctx context.Context, db *store.DB, options Options) (*verifier, error) {
	if options.MaxFaults <= 0 {
		options.MaxFaults = DefaultMaxFaults
	}
	v := &verifier{db: db, options: options}
	v.report.Origin, v.report.Faults, v.report.Keys = db.Identity.Origin, []Fault{}, []string{}
	keys, err := options.TrustedKeys, error(nil)
	if len(keys) == 0 {
		if keys, err = sidecar.ReadPublicKeys(db.Path); err != nil {
			return nil, err
		}
		v.report.KeysFromFile, v.keyless = true, len(keys) == 0
	}
	v.given, v.trustedKeys = keys, slices.Clone(keys)
	if v.trusted, err = checkpoint.NewKeys(keys...); err != nil {
		return nil, &auditerr.Error{Code: auditerr.CodeInvalid, Path: db.Path, Msg: "the trusted keys", Err: err, Hint: "give verifier keys as in the .pub file"}
	}
	// The keys are those that trusted has just taken.
	if v.claimed, err = checkpoint.NewKeys(keys...); err != nil {
		return nil, err
	}
	if v.witnessKeys, err = checkpoint.NewWitnessKeys(options.WitnessKeys...); err != nil {
		return nil, &auditerr.Error{Code: auditerr.CodeInvalid, Path: db.Path, Msg: "the keys of the witnesses", Err: err, Hint: "give lines of the .pub files of their logs"}
	}
	err = db.CheckSchema(ctx)
	if altered, ok := errors.AsType[*auditerr.Error](err); ok && altered.Code == auditerr.CodeTampered {
		v.add(Fault{Class: SchemaAltered, Detail: altered.Msg})
		v.schemaAltered = true
	} else if err != nil {
		return nil, err
	}
	return v, v.collectOutside(ctx)
}

// run goes through the log once.
func (v *verifier) run(ctx context.Context) error {
	if !v.options.FromCheckpoint && v.options.Continue == nil {
		v.indexes = newIndexCheck()
		if err := v.indexes.lookups.begin(ctx, v.db, v.schemaAltered); err != nil {
			return err
		}
	}
	erasures, err := loadErasures(ctx, v.db)
	if err != nil {
		return err
	}
	v.erasures = erasures
	first, err := v.begin(ctx)
	if err != nil || first == 0 {
		return err
	}
	previous, err := hashBefore(ctx, v.db, first)
	if err != nil {
		return err
	}
	v.chain = chain{db: v.db, previous: previous, erasures: v.erasures, leaf: func(r *checkedRecord) { v.leaf(ctx, r) }}
	if v.options.Continue != nil {
		v.chain.time = v.options.Continue.Time
	}
	if err := v.pass(ctx, first, v.report.Last); err != nil {
		return err
	}
	if err := v.catchUp(ctx); err != nil {
		return err
	}
	return v.finish(ctx)
}

// pass checks the records from first to last.
func (v *verifier) pass(ctx context.Context, first, last int64) error {
	for f, err := range v.chain.faults(ctx, first, last) {
		if err = errors.Join(err, v.err); err != nil {
			return err
		}
		v.unsignedFaults++
		v.add(f)
	}
	return v.err
}

// maxRounds bounds the rounds of catchUp. Records are checked several times as fast as they
// can be appended and erased, so each round is a fraction of the one before, and the last
// ones take less time than one erasure.
const maxRounds = 16

// catchUp goes on over the records that were appended meanwhile for as long as the records
// read rely on one of those. An erasure that was made during the run does: only the whole
// chain up to the record that allows it tells whether that is genuine, and who signed it.
func (v *verifier) catchUp(ctx context.Context) error {
	for range maxRounds {
		if !v.report.OK() || v.erasures.authority <= v.report.Last {
			return nil
		}
		first := v.report.Last + 1
		if err := v.newest(ctx); err != nil {
			return err
		}
		if v.report.Last < first {
			return nil // the log does not have it any more, and finish says so
		}
		if v.report.First == 0 {
			v.report.First = first
		}
		if err := v.loadStored(ctx, first-1); err != nil {
			return err
		}
		if err := v.pass(ctx, first, v.report.Last); err != nil {
			return err
		}
	}
	if !v.report.OK() || v.erasures.authority <= v.report.Last {
		return nil
	}
	return &auditerr.Error{Code: auditerr.CodeBusy, Path: v.db.Path, Msg: "records are erased from the log faster than they can be verified",
		Hint: "verify it again once the erasures are over"}
}

// newest reads where the log ends now.
func (v *verifier) newest(ctx context.Context) error {
	// One statement reads one moment. Whatever is appended later is not checked,
	// so a checkpoint that covers it must not be compared either.
	err := v.db.ScanPacked(ctx, `SELECT `+store.LastSQL+`, (SELECT coalesce(max(size), 0) FROM checkpoints)`, nil, []any{&v.report.Last, &v.lastStored})
	return v.db.Wrap("reading the newest record", err)
}

// begin determines the range to verify, from the record first to the newest one, and
// prepares the tree for it. It returns 0 if there is nothing to go on from.
func (v *verifier) begin(ctx context.Context) (first int64, err error) {
	if err := v.newest(ctx); err != nil {
		return 0, err
	}
	first = 1
	if v.options.FromCheckpoint {
		if first, err = v.skipSigned(ctx, v.report.Last); err != nil {
			return 0, err
		}
	}
	if v.options.Continue != nil {
		if first, err = v.resume(ctx, v.report.Last); err != nil || first == 0 {
			return 0, err
		}
	}
	if first <= v.report.Last {
		v.report.First = first
	}
	// Even if there is no record to read, a tree head of size 0 or of the size to
	// start from has to be compared.
	if err := v.loadStored(ctx, first-2); err != nil {
		return 0, err
	}
	v.compareHeads(ctx)
	return first, v.err
}

// skipSigned starts the tree at the newest outside tree head that a trusted key
// signed, and returns the number of the record after it. If the last record under it
// changes the key, the run begins with that one: what follows is signed with the key that
// it names, which may be one that the auditor does not know.
func (v *verifier) skipSigned(ctx context.Context, last int64) (first int64, err error) {
	for i := len(v.outside) - 1; i >= 0; i-- {
		size := v.outside[i].parsed.Size
		if size > last || size == 0 {
			continue
		}
		if _, err := checkpoint.Open(v.outside[i].note, v.trusted); err != nil {
			continue
		}
		for v.outside[0].parsed.Size < size {
			v.outside = v.outside[1:]
		}
		change, err := firstOf(ctx, v.db, `SELECT seq FROM records WHERE seq = ? AND kind = ?`, size, record.KindCheckpoint)
		if err != nil {
			return 0, err
		}
		if change == size {
			size--
		}
		v.tree, err = v.db.Tree(ctx).Frontier(size)
		return size + 1, err
	}
	return 1, nil
}

// leaf is called for each record in turn. It counts the record, grows the tree
// and compares the tree with the signed tree heads of its size.
func (v *verifier) leaf(ctx context.Context, r *checkedRecord) {
	if v.err != nil {
		return
	}
	if r.seq != v.tree.Size()+1 {
		v.treeLost = true
	}
	if r.pruned {
		v.report.Pruned++
	} else {
		v.count(r)
		if v.indexes != nil {
			v.indexes.expect(r.row)
		}
	}
	v.tree.Add(r.hash, func(level int, position int64, hash tlog.Hash) { v.compareNode(ctx, level, position, hash) })
	v.compareHeads(ctx)
	if v.options.Progress != nil && r.seq%pageSize == 0 {
		v.options.Progress(r.seq, v.report.Last)
	}
}

// count counts a record that is there.
func (v *verifier) count(r *checkedRecord) {
	v.report.Records++
	if r.erased {
		v.report.Erased++
	}
	if v.options.Tenant != "" && string(r.tenant) == v.options.Tenant {
		v.report.Tenant++
	}
	if string(r.kind) == string(record.KindCheckpoint) {
		v.noteKeyChange(r)
	}
}

// finish makes the checks that are only possible at the end.
func (v *verifier) finish(ctx context.Context) error {
	if err := v.compareBeyond(ctx, v.report.Last); err != nil {
		return err
	}
	v.checkQuorum()
	if err := v.checkRows(ctx); err != nil {
		return err
	}
	if !v.report.OK() {
		return nil
	}
	if authority := v.erasures.authority; authority > v.report.Signed {
		v.add(Fault{Class: ForgedErasure, Seq: authority, Detail: "it allows records or contents to be gone, but no checkpoint covers it"})
		return nil
	}
	return v.finishTail(ctx, v.report.Last)
}

// checkRows looks for what the pass over the records cannot meet: rows outside the
// numbering, and indexes that do not list what the records say. A run from a
// checkpoint leaves the indexes out: they are as long as the log.
func (v *verifier) checkRows(ctx context.Context) error {
	f, err := checkNumbers(ctx, v.db, v.report.First, 0)
	if err != nil {
		return err
	}
	if f != nil {
		v.add(*f)
	}
	if v.indexes == nil {
		return nil
	}
	var finding string
	if v.schemaAltered { // an index that a scan needs may not be there
		finding, err = v.db.CheckIndexes(ctx)
	} else {
		finding, err = v.indexes.finding(ctx, v.db, v.report.Last)
	}
	if err != nil {
		return err
	}
	if finding != "" {
		v.add(Fault{Class: IndexAltered, Detail: finding + ": queries and exports do not show what the records say"})
	}
	return nil
}

// finishTail applies the rule for the records after the last good checkpoint. The
// first record of a log is signed as it is written, so that a log of which nothing is
// signed is no log, however young.
func (v *verifier) finishTail(ctx context.Context, last int64) error {
	if v.report.Signed == 0 && last > 0 {
		v.add(*unsignedLog(last))
		return nil
	}
	f, err := checkTail(ctx, v.db, v.report.Signed, last)
	if err != nil {
		return err
	}
	if f != nil {
		v.add(*f)
	}
	return nil
}

// add counts a fault, and lists it if there is room.
func (v *verifier) add(f Fault) {
	v.report.FaultCount++
	if len(v.report.Faults) < v.options.MaxFaults {
		v.report.Faults = append(v.report.Faults, f)
	}
}
