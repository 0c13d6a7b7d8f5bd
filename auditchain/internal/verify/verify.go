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
// records that were there when it began. The error is for what prevented the
// verification; tampering is in the report.
func Run(ctx context.Context, db *store.DB, options Options) (*Report, error) {
	v, err := newVerifier(ctx, db, options)
	if err != nil {
		return nil, err
	}
	if err := v.run(ctx); err != nil {
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
	}
	erasures, err := loadErasures(ctx, v.db)
	if err != nil {
		return err
	}
	v.erasures = erasures
	first, last, err := v.begin(ctx)
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
	for f, err := range v.chain.faults(ctx, first, last) {
		if err = errors.Join(err, v.err); err != nil {
			return err
		}
		v.unsignedFaults++
		v.add(f)
	}
	if v.err != nil {
		return v.err
	}
	return v.finish(ctx, last)
}

// begin determines the range to verify and prepares the tree for it.
func (v *verifier) begin(ctx context.Context) (first, last int64, err error) {
	// One statement reads one moment. Whatever is appended later is not checked,
	// so a checkpoint that covers it must not be compared either.
	err = v.db.ScanPacked(ctx, `SELECT `+store.LastSQL+`, (SELECT coalesce(max(size), 0) FROM checkpoints)`, nil, []any{&last, &v.lastStored})
	if err != nil {
		return 0, 0, v.db.Wrap("reading the newest record", err)
	}
	first = 1
	if v.options.FromCheckpoint {
		if first, err = v.skipSigned(ctx, last); err != nil {
			return 0, 0, err
		}
	}
	v.report.Last = last
	if v.options.Continue != nil {
		if first, err = v.resume(ctx, last); err != nil || first == 0 {
			return 0, 0, err
		}
	}
	if first <= last {
		v.report.First = first
	}
	// Even if there is no record to read, a tree head of size 0 or of the size to
	// start from has to be compared.
	if err := v.loadStored(ctx, first-1); err != nil {
		return 0, 0, err
	}
	v.compareHeads(ctx)
	return first, last, v.err
}

// skipSigned starts the tree at the newest outside tree head that a trusted key
// signed, and returns the number of the record after it.
func (v *verifier) skipSigned(ctx context.Context, last int64) (first int64, err error) {
	for i := len(v.outside) - 1; i >= 0; i-- {
		size := v.outside[i].parsed.Size
		if size > last || size == 0 {
			continue
		}
		if _, err := checkpoint.Open(v.outside[i].note, v.trusted); err != nil {
			continue
		}
		if v.tree, err = v.db.Tree(ctx).Frontier(size); err != nil {
			return 0, err
		}
		for v.outside[0].parsed.Size < size {
			v.outside = v.outside[1:]
		}
		return size + 1, nil
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
func (v *verifier) finish(ctx context.Context, last int64) error {
	if err := v.compareBeyond(ctx, last); err != nil {
		return err
	}
	v.checkQuorum()
	if err := v.checkRows(ctx); err != nil {
		return err
	}
	if !v.report.OK() {
		return nil
	}
	authority := v.erasures.authority
	if authority <= v.report.Signed {
		return v.finishTail(ctx, last)
	}
	if authority > last {
		// An erasure that was made during this run: its record lies beyond the
		// range, and so does the checkpoint over it.
		signed, err := v.signedSince(ctx, authority)
		if err != nil {
			return err
		}
		if signed {
			return v.finishTail(ctx, last)
		}
	}
	v.add(Fault{Class: ForgedErasure, Seq: authority, Detail: "it allows records or contents to be gone, but no checkpoint covers it"})
	return nil
}

// checkRows looks for what the pass over the records cannot meet: rows outside the
// numbering, and indexes that do not list what the records say. A run from a
// checkpoint leaves the indexes out: they are as long as the log.
func (v *verifier) checkRows(ctx context.Context) error {
	f, err := checkNumbers(ctx, v.db, v.report.First)
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
