package auditchain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"golang.org/x/mod/sumdb/tlog"
)

// DefaultMaxFaults is how many faults a report lists.
const DefaultMaxFaults = 16

// VerifyOptions configures [Reader.Verify]. The zero value verifies the whole
// log against the public keys beside it.
type VerifyOptions struct {
	// TrustedKeys are the verifier keys that the auditor trusts. When there are
	// none, those in the file beside the database count, which whoever rewrote
	// the database may have rewritten too.
	TrustedKeys []string
	// Checkpoints are signed states of the log that were kept elsewhere. The log
	// must have grown from each of them.
	Checkpoints [][]byte
	// Witnesses are asked for their newest state of the log.
	Witnesses []checkpoint.Witness
	// FromCheckpoint takes the records under the checkpoint in the file beside
	// the database as verified, and checks only that the tree still has its
	// root, and the records after it.
	FromCheckpoint bool
	// Tenant, if set, is counted separately. The chain runs through all tenants
	// and can only be verified whole.
	Tenant string
	// MaxFaults bounds the faults that the report lists; 0 is
	// [DefaultMaxFaults]. All are counted.
	MaxFaults int
	// Progress, if set, is called now and then with the newest verified record
	// and the number of the last one.
	Progress func(seq, last int64)
}

// A Report is the outcome of [Reader.Verify].
type Report struct {
	// Origin is the log's name.
	Origin string `json:"origin"`
	// Records counts the records that were checked.
	Records int64 `json:"records"`
	// Tenant counts those of the tenant asked for.
	Tenant int64 `json:"tenantRecords,omitempty"`
	// Pruned counts records that were removed, Erased those without content,
	// both with a signed record that allows it.
	Pruned int64 `json:"pruned"`
	Erased int64 `json:"erased"`
	// First is the number of the first record that was looked at, 0 for none, and
	// Last that of the last record in the log, 0 in an empty one.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Checkpoints counts the signed states that the records were held against.
	Checkpoints int64 `json:"checkpoints"`
	// Signed is the number of the last record under a good checkpoint. What
	// comes after it could still be changed unseen.
	Signed int64 `json:"signed"`
	// Keys lists the verifier keys that good checkpoints were signed with.
	Keys []string `json:"keys"`
	// KeysFromFile is true when the trusted keys came from beside the database.
	KeysFromFile bool `json:"keysFromFile"`
	// Witnesses names the witnesses whose state of the log was confirmed.
	Witnesses []string `json:"witnesses,omitempty"`
	// Faults lists the first faults found, in the order of the log; FaultCount
	// counts all.
	Faults     []Fault `json:"faults"`
	FaultCount int64   `json:"faultCount"`
}

// OK reports whether no fault was found.
func (r *Report) OK() bool { return r.FaultCount == 0 }

// Unsigned counts the records that no checkpoint covers yet.
func (r *Report) Unsigned() int64 { return max(0, r.Last-r.Signed) }

// Verify recomputes every hash of the log, holds the result against every
// signed state it can get, and reports what is wrong. It reads in pages and in
// constant memory, and may run while the log is written to.
//
// The error is for what prevented verification; tampering is in the report.
func (r *Reader) Verify(ctx context.Context, options VerifyOptions) (*Report, error) {
	v, err := r.newVerifier(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := v.run(ctx); err != nil {
		if code := CodeOf(err); code != CodeCorrupt && code != CodeTampered {
			return nil, err
		}
		v.add(Fault{Class: FaultUnreadable, Seq: v.tree.size + 1, Detail: err.Error()})
	}
	return &v.report, nil
}

// A verifier is one run of Verify.
type verifier struct {
	reader  *Reader
	options VerifyOptions
	report  Report
	trusted *checkpoint.Keys
	// rotations are key changes that no checkpoint has covered yet.
	rotations []rotation
	tree      frontier
	treeLost  bool // a hash is unknown: no root can be computed any more
	// signed states that came from outside the table checkpoints, by size.
	outside []outsideState
	// next is the next row of the table checkpoints, lastState the size of the
	// last one to look at.
	next      storedCheckpoint
	lastState int64
	erasures  *erasureCheck
	sinceGood int64 // faults of records since the last good checkpoint
	err       error // of a look-up inside a callback
}

type rotation struct {
	seq    int64
	change keyChange
}

// A storedCheckpoint is a row of the table checkpoints; size 0 is none.
type storedCheckpoint struct {
	size int64
	note []byte
}

func (c storedCheckpoint) state() outsideState {
	return outsideState{note: c.note, from: "a stored checkpoint", parsed: checkpoint.Checkpoint{Size: c.size}}
}

// An outsideState is a signed state to hold the log against.
type outsideState struct {
	note    []byte
	from    string // for messages
	witness string // the name of the witness that gave it
	parsed  checkpoint.Checkpoint
}

// newVerifier gathers what the records are to be held against.
func (r *Reader) newVerifier(ctx context.Context, options VerifyOptions) (*verifier, error) {
	if options.MaxFaults <= 0 {
		options.MaxFaults = DefaultMaxFaults
	}
	v := &verifier{reader: r, options: options}
	v.report.Origin, v.report.Faults, v.report.Keys = r.identity.origin, []Fault{}, []string{}
	keys, err := options.TrustedKeys, error(nil)
	if len(keys) == 0 {
		if keys, err = readPublic(r.path); err != nil {
			return nil, err
		}
		v.report.KeysFromFile = true
	}
	if v.trusted, err = checkpoint.NewKeys(keys...); err != nil {
		return nil, &Error{Code: CodeInvalid, Path: r.path, Msg: "the trusted keys", Err: err, Hint: "give verifier keys as in the .pub file"}
	}
	var altered *Error
	if err := checkSchema(ctx, r.db, r.path); errors.As(err, &altered) && altered.Code == CodeTampered {
		v.add(Fault{Class: FaultSchemaAltered, Detail: altered.Msg})
	} else if err != nil {
		return nil, err
	}
	if err := v.collectOutside(ctx); err != nil {
		return nil, err
	}
	v.erasures, err = newErasureCheck(ctx, r.db, r.path)
	return v, err
}

// collectOutside gathers the signed states that are not in the database.
func (v *verifier) collectOutside(ctx context.Context) error {
	file, err := readCheckpointFile(v.reader.path)
	if err != nil {
		return err
	}
	if file != nil {
		v.addOutside(outsideState{note: file, from: "the checkpoint file"})
	}
	for _, note := range v.options.Checkpoints {
		v.addOutside(outsideState{note: note, from: "a given checkpoint"})
	}
	for _, w := range v.options.Witnesses {
		note, err := w.Latest(ctx, v.report.Origin)
		if err != nil {
			return fmt.Errorf("auditchain: witness %s: %w", w.Name(), err)
		}
		if note == nil {
			v.add(Fault{Class: FaultWitnessConflict, Detail: "witness " + w.Name() +
				" knows no state of this log: it was never shown one, or another log is in its place"})
			continue
		}
		v.addOutside(outsideState{note: note, from: "witness " + w.Name(), witness: w.Name()})
	}
	slices.SortStableFunc(v.outside, func(a, b outsideState) int { return int(min(1, max(-1, a.parsed.Size-b.parsed.Size))) })
	return nil
}

// addOutside takes a signed state in, if it can be read at all. Signatures are
// checked when the tree has its size.
func (v *verifier) addOutside(s outsideState) {
	c, err := checkpoint.Parse(string(s.note))
	if err != nil {
		v.add(Fault{Class: FaultCheckpointForged, Detail: s.from + ": " + err.Error()})
		return
	}
	s.parsed = c
	v.outside = append(v.outside, s)
}

// run goes through the log once.
func (v *verifier) run(ctx context.Context) error {
	first, last, err := v.begin(ctx)
	if err != nil {
		return err
	}
	chain := chainCheck{path: v.reader.path, q: v.reader.db, previous: v.reader.identity.genesis(), erasures: v.erasures}
	if first > 1 {
		tree := treeReader{ctx: ctx, q: v.reader.db, path: v.reader.path}
		hashes, err := tree.stored(0, first-2, 1)
		if err != nil {
			return err
		}
		chain.previous = hashes[0]
	}
	chain.leaf = func(row *checkedRow) { v.leaf(ctx, row) }
	for f, err := range chain.faults(ctx, first, last) {
		if err = errors.Join(err, v.err); err != nil {
			return err
		}
		v.sinceGood++
		v.add(f)
	}
	if v.err != nil {
		return v.err
	}
	v.finish(ctx, last)
	return v.err
}

// begin finds the range to verify and sets the tree up for it.
func (v *verifier) begin(ctx context.Context) (first, last int64, err error) {
	// One statement, one moment: what is appended from here on is not looked at.
	err = v.reader.db.QueryRowContext(ctx, `SELECT (SELECT coalesce(max(seq), 0) FROM records), (SELECT coalesce(max(size), 0) FROM checkpoints)`).
		Scan(&last, &v.lastState)
	if err != nil {
		return 0, 0, fault(v.reader.path, "reading the newest record", err)
	}
	first = 1
	if v.options.FromCheckpoint {
		if first, err = v.skipSigned(ctx, last); err != nil {
			return 0, 0, err
		}
	}
	if v.report.Last = last; first <= last {
		v.report.First = first
	}
	// Where nothing needs to be read, a state of size 0 or of the size to start
	// from is still to be checked.
	if err := v.loadNext(ctx, first-1); err != nil {
		return 0, 0, err
	}
	v.checkStates(ctx)
	return first, last, v.err
}

// skipSigned starts the tree from the newest outside state that is signed by a
// trusted key.
func (v *verifier) skipSigned(ctx context.Context, last int64) (first int64, err error) {
	for _, s := range slices.Backward(v.outside) {
		if s.parsed.Size > last || s.parsed.Size == 0 {
			continue
		}
		if _, err := checkpoint.Open(s.note, v.trusted); err != nil {
			continue
		}
		tree := treeReader{ctx: ctx, q: v.reader.db, path: v.reader.path}
		if v.tree, err = tree.loadFrontier(s.parsed.Size); err != nil {
			return 0, err
		}
		v.outside = slices.DeleteFunc(v.outside, func(o outsideState) bool { return o.parsed.Size < s.parsed.Size })
		return s.parsed.Size + 1, nil
	}
	return 1, nil
}

// leaf follows the chain check: it grows the tree and holds it against the
// signed states on the way.
func (v *verifier) leaf(ctx context.Context, row *checkedRow) {
	if v.err != nil {
		return
	}
	if row.seq != v.tree.size+1 {
		v.treeLost = true
	}
	switch {
	case row.pruned:
		v.report.Pruned++
	default:
		v.report.Records++
		if row.erased {
			v.report.Erased++
		}
		if v.options.Tenant != "" && string(row.tenant) == v.options.Tenant {
			v.report.Tenant++
		}
		if string(row.kind) == string(KindCheckpoint) {
			v.noteRotation(row)
		}
	}
	v.tree.add(row.hash, func(level int, position int64, hash tlog.Hash) { v.checkNode(ctx, level, position, hash) })
	v.checkStates(ctx)
	if v.options.Progress != nil && row.seq%checkPage == 0 {
		v.options.Progress(row.seq, v.report.Last)
	}
}

// checkNode compares a node that the leaves give with the stored one.
func (v *verifier) checkNode(ctx context.Context, level int, position int64, hash tlog.Hash) {
	if v.treeLost || v.sinceGood > 0 {
		return // it would only repeat what is reported already
	}
	var stored []byte
	err := v.reader.db.QueryRowContext(ctx, `SELECT hash FROM tree WHERE level = ? AND position = ?`, level, position).Scan(&stored)
	if err != nil && !isNoRows(err) {
		v.err = fault(v.reader.path, "reading the Merkle tree", err)
		return
	}
	if string(stored) != string(hash[:]) {
		v.add(Fault{Class: FaultTreeAltered, Seq: position<<level + 1, Last: (position + 1) << level,
			Detail: fmt.Sprintf("the node of level %d over these records is not the one stored", level)})
	}
}

// finish deals with what can only be said at the end.
func (v *verifier) finish(ctx context.Context, last int64) {
	v.checkBeyond(ctx, last)
	if v.erasures.authority <= v.report.Signed || !v.report.OK() || v.err != nil {
		return
	}
	if v.erasures.authority > last && v.signedSince(ctx) {
		return
	}
	v.add(Fault{Class: FaultForgedErasure, Seq: v.erasures.authority, Detail: "it allows records or contents to be gone, but no checkpoint covers it"})
}

// signedSince reports whether the authority of an erasure made during this run
// is under a genuine checkpoint. Its records are for the next run to check.
func (v *verifier) signedSince(ctx context.Context) bool {
	var note []byte
	err := v.reader.db.QueryRowContext(ctx, `SELECT note FROM checkpoints WHERE size >= ? ORDER BY size LIMIT 1`, v.erasures.authority).Scan(&note)
	if err != nil {
		if !isNoRows(err) {
			v.err = fault(v.reader.path, "reading the checkpoints", err)
		}
		return false
	}
	signed, err := checkpoint.Open(note, v.trusted)
	return err == nil && signed.Origin == v.report.Origin && signed.Size >= v.erasures.authority
}

// checkBeyond reports signed states beyond the end of the log: one fault for
// the largest, or, where none is genuine, what is wrong with them.
func (v *verifier) checkBeyond(ctx context.Context, last int64) {
	beyond := v.outside
	for v.err == nil && v.next.size > 0 {
		beyond = append(beyond, v.next.state())
		v.err = v.loadNext(ctx, v.next.size+1)
	}
	var largest *checkpoint.Signed
	var from outsideState
	var rejected []Fault
	for _, s := range beyond {
		signed, f := v.open(s)
		if signed == nil {
			rejected = append(rejected, f)
		} else if largest == nil || signed.Size > largest.Size {
			largest, from = signed, s
		}
	}
	if largest == nil {
		for _, f := range rejected {
			v.add(f)
		}
		return
	}
	f := Fault{Class: FaultTruncated, Seq: last + 1, Last: largest.Size,
		Detail: fmt.Sprintf("the log ends at record %d, %s covers %d", last, from.from, largest.Size)}
	if from.witness != "" {
		f.Class = FaultWitnessConflict
	}
	v.add(f)
}

// add counts a fault, and lists it if there is room.
func (v *verifier) add(f Fault) {
	v.report.FaultCount++
	if len(v.report.Faults) < v.options.MaxFaults {
		v.report.Faults = append(v.report.Faults, f)
	}
}
