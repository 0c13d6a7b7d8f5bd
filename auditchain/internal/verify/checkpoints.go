package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// A signedHead is a signed tree head to compare the log with.
type signedHead struct {
	note    []byte
	from    string // for messages
	witness string // the name of the witness that returned it, or ""
	parsed  checkpoint.Checkpoint
}

// A storedHead is a row of the table checkpoints; size 0 means none.
type storedHead struct {
	size int64
	note []byte
}

func (c storedHead) head() signedHead {
	return signedHead{note: c.note, from: "a stored checkpoint", parsed: checkpoint.Checkpoint{Size: c.size}}
}

// collectOutside gathers the signed tree heads that are not in the database:
// whoever rewrites the database cannot rewrite all of them.
func (v *verifier) collectOutside(ctx context.Context) error {
	file, err := sidecar.ReadCheckpoint(v.db.Path)
	if err != nil {
		return err
	}
	if file != nil {
		v.addOutside(signedHead{note: file, from: "the checkpoint file"})
	}
	for _, note := range v.options.Checkpoints {
		v.addOutside(signedHead{note: note, from: "a given checkpoint"})
	}
	for _, w := range v.options.Witnesses {
		note, err := w.Latest(ctx, v.report.Origin)
		if err != nil && v.options.Quorum > 0 {
			v.report.WitnessesSilent = append(v.report.WitnessesSilent, w.Name())
			continue
		}
		if errors.Is(err, checkpoint.ErrUncosigned) || errors.Is(err, checkpoint.ErrEdited) {
			v.add(Fault{Class: WitnessUnproven, Detail: "witness " + w.Name() + ": " + err.Error()})
			continue
		}
		if err != nil {
			return fmt.Errorf("auditchain: witness %s: %w", w.Name(), err)
		}
		if note == nil && v.options.Quorum > 0 {
			v.report.WitnessesSilent = append(v.report.WitnessesSilent, w.Name())
			continue
		}
		if note == nil {
			v.add(Fault{Class: WitnessConflict, Detail: "witness " + w.Name() +
				" knows no state of this log: it was never shown one, or another log is in its place"})
			continue
		}
		v.addOutside(signedHead{note: note, from: "witness " + w.Name(), witness: w.Name()})
	}
	slices.SortStableFunc(v.outside, func(a, b signedHead) int { return cmp.Compare(a.parsed.Size, b.parsed.Size) })
	return nil
}

// addOutside adds a signed tree head if it can be parsed. Its signature is
// checked only when the tree has its size: by then the changes of keys before it
// are known.
func (v *verifier) addOutside(h signedHead) {
	c, err := checkpoint.Parse(string(h.note))
	if err != nil {
		v.add(Fault{Class: CheckpointForged, Detail: h.from + ": " + err.Error()})
		return
	}
	h.parsed = c
	v.outside = append(v.outside, h)
}

// compareHeads compares the tree, as it is after the newest record, with every
// signed tree head of its size.
func (v *verifier) compareHeads(ctx context.Context) {
	for v.err == nil && v.stored.size > 0 && v.stored.size <= v.tree.Size() {
		if v.stored.size == v.tree.Size() {
			v.compareHead(v.stored.head())
		}
		v.err = v.loadStored(ctx, v.stored.size)
	}
	for len(v.outside) > 0 && v.outside[0].parsed.Size <= v.tree.Size() {
		if v.outside[0].parsed.Size == v.tree.Size() {
			v.compareHead(v.outside[0])
		}
		v.outside = v.outside[1:]
	}
}

// compareHead compares the tree with one signed tree head of its size.
func (v *verifier) compareHead(h signedHead) {
	signed, f := v.open(h)
	if signed == nil {
		if f != nil {
			v.add(*f)
		}
		return
	}
	if v.treeLost {
		return
	}
	if root := v.tree.Root(); root != signed.Root {
		if v.unsignedFaults == 0 {
			v.add(Fault{Class: h.conflict(Rewritten), Seq: v.report.Signed + 1, Last: signed.Size,
				Detail: h.from + " was signed over other records"})
		}
		return
	}
	v.report.Checkpoints++
	v.report.Signed = max(v.report.Signed, signed.Size)
	v.unsignedFaults = 0
	if !slices.Contains(v.report.Keys, signed.Key) {
		v.report.Keys = append(v.report.Keys, signed.Key)
	}
	if h.witness != "" {
		v.confirm(h)
	}
	v.trustSuccessors(signed.Key)
	v.keepState()
}

// confirm counts a witness whose checkpoint matches, if the witness has signed it. That
// the log has signed it says nothing: whoever carries the answer could have copied it.
func (v *verifier) confirm(h signedHead) {
	err := checkpoint.CheckCosigned(h.note, v.witnessKeys)
	switch {
	case err == nil:
		v.report.Witnesses = append(v.report.Witnesses, h.witness)
	case len(v.options.WitnessKeys) == 0 && slices.ContainsFunc(checkpoint.Signers(h.note), func(name string) bool { return name != v.report.Origin }):
		v.report.WitnessesUnpinned = append(v.report.WitnessesUnpinned, h.witness)
	case v.options.Quorum > 0:
		v.report.WitnessesSilent = append(v.report.WitnessesSilent, h.witness)
	default:
		v.add(Fault{Class: WitnessUnproven, Seq: h.parsed.Size, Detail: fmt.Sprintf("the answer of %s proves nothing: %v", h.from, err)})
	}
}

// checkQuorum checks that enough witnesses have confirmed the log.
func (v *verifier) checkQuorum() {
	if n := len(v.report.Witnesses); n < v.options.Quorum {
		v.add(Fault{Class: WitnessUnproven, Detail: fmt.Sprintf("%d of %d witnesses have confirmed the log with a signature of theirs, %d must", n, len(v.options.Witnesses), v.options.Quorum)})
	}
}

// conflict returns the class of a fault that a tree head proves: the given one,
// or that of a witness.
func (h *signedHead) conflict(class Class) Class {
	if h.witness != "" {
		return WitnessConflict
	}
	return class
}

// open checks the signature of a tree head. It returns nil and a fault if the
// signature is not a good one. Both are nil where the reason has been reported: once
// a record is missing, no tree head can prove the change of keys after it, and without
// the file of public keys no signature can be checked.
func (v *verifier) open(h signedHead) (*checkpoint.Signed, *Fault) {
	signed, err := checkpoint.Open(h.note, v.trusted)
	f := &Fault{Class: CheckpointForged, Seq: h.parsed.Size}
	switch {
	case err == nil && signed.Origin == v.report.Origin:
		return signed, nil
	case err == nil:
		f.Detail = h.from + " is of another log, " + signed.Origin
	case errors.Is(err, checkpoint.ErrUntrusted) && v.keyless:
		// One missing file is one fault, however many checkpoints need it.
		if v.keylessSaid {
			return nil, nil
		}
		v.keylessSaid = true
		f.Class, f.Detail = KeyUntrusted, "there is no key to check signatures with: "+v.db.Path+sidecar.PublicSuffix+
			" is missing (a backup of the database alone leaves it out: copy it too, or give the keys)"
	case errors.Is(err, checkpoint.ErrUntrusted):
		if claimed, cerr := checkpoint.Open(h.note, v.claimed); v.treeLost && cerr == nil && claimed.Origin == v.report.Origin {
			return nil, nil
		}
		f.Class, f.Detail = KeyUntrusted, h.from+": "+err.Error()
	default:
		f.Detail = h.from + ": " + err.Error()
	}
	return nil, f
}

// loadStored reads the first stored checkpoint of more than the given size, which may be the
// largest number that there is. Malformed ones are reported and skipped.
func (v *verifier) loadStored(ctx context.Context, after int64) error {
	for {
		v.stored = storedHead{}
		err := v.db.QueryRowContext(ctx, `SELECT size, note FROM checkpoints WHERE size > ? AND size <= ? ORDER BY size LIMIT 1`,
			max(0, after), v.lastStored).
			Scan(&v.stored.size, &v.stored.note)
		if store.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return v.db.Wrap("reading the checkpoints", err)
		}
		c, err := checkpoint.Parse(string(v.stored.note))
		if err == nil && c.Size == v.stored.size {
			return nil
		}
		v.add(Fault{Class: CheckpointForged, Seq: v.stored.size, Detail: "a stored checkpoint is malformed or not of the size it is stored under"})
		after = v.stored.size
	}
}

// compareBeyond reports signed tree heads beyond the end of the log: one fault
// for the largest, or, if none is genuine, the fault of each. After a gap of
// missing records the tree has not reached the heads before the end either. Those
// cannot be compared, and the gap is reported already.
func (v *verifier) compareBeyond(ctx context.Context, last int64) error {
	beyond := v.outside
	for v.stored.size > 0 {
		beyond = append(beyond, v.stored.head())
		if err := v.loadStored(ctx, v.stored.size); err != nil {
			return err
		}
	}
	var largest *checkpoint.Signed
	var from signedHead
	var rejected []Fault
	for _, h := range beyond {
		signed, f := v.open(h)
		switch {
		case signed == nil && f != nil:
			rejected = append(rejected, *f)
		case signed == nil:
		case signed.Size > last && (largest == nil || signed.Size > largest.Size):
			largest, from = signed, h
		}
	}
	if largest == nil {
		for _, f := range rejected {
			v.add(f)
		}
		return nil
	}
	v.add(Fault{Class: from.conflict(Truncated), Seq: last + 1, Last: largest.Size,
		Detail: fmt.Sprintf("the log ends at record %d, %s covers %d", last, from.from, largest.Size)})
	return nil
}

// A seenKeyChange is a change of keys in the chain.
type seenKeyChange struct {
	seq    int64
	change record.KeyChange
}

// noteKeyChange remembers a change of keys until a checkpoint covers it.
func (v *verifier) noteKeyChange(r *checkedRecord) {
	var change record.KeyChange
	if json.Unmarshal(r.body, &change) == nil && change.Event == record.KeyRotated {
		v.changes = append(v.changes, seenKeyChange{r.seq, change})
		_ = v.claimed.Add(change.Key) // a key that cannot be parsed signs nothing
	}
}

// trustSuccessors extends trust, under a good checkpoint signed with key, to the
// keys that the records it covers name as successors of that key.
func (v *verifier) trustSuccessors(key string) {
	for _, c := range v.changes {
		if c.change.Previous == key {
			// A key that cannot be parsed signs nothing that could be trusted.
			if v.trusted.Add(c.change.Key) == nil {
				v.trustedKeys = append(v.trustedKeys, c.change.Key)
			}
		}
	}
	v.changes = nil
}
