package auditchain

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// checkStates holds the tree, as it is after the newest row, against every
// signed state of its size.
func (v *verifier) checkStates(ctx context.Context) {
	for v.err == nil && v.next.size > 0 && v.next.size <= v.tree.size {
		if v.next.size == v.tree.size {
			v.checkState(v.next.state())
		}
		v.err = v.loadNext(ctx, v.next.size+1)
	}
	for len(v.outside) > 0 && v.outside[0].parsed.Size <= v.tree.size {
		if v.outside[0].parsed.Size == v.tree.size {
			v.checkState(v.outside[0])
		}
		v.outside = v.outside[1:]
	}
}

// checkState holds the tree against one signed state of its size.
func (v *verifier) checkState(s outsideState) {
	signed, f := v.open(s)
	if signed == nil {
		v.add(f)
		return
	}
	if v.treeLost {
		return
	}
	if root := v.tree.root(); root != signed.Root {
		f := Fault{Class: FaultRewritten, Seq: v.report.Signed + 1, Last: signed.Size,
			Detail: s.from + " was signed over other records"}
		if s.witness != "" {
			f.Class = FaultWitnessConflict
		}
		if v.sinceGood == 0 {
			v.add(f)
		}
		return
	}
	v.report.Checkpoints++
	v.report.Signed = max(v.report.Signed, signed.Size)
	v.sinceGood = 0
	if !slices.Contains(v.report.Keys, signed.Key) {
		v.report.Keys = append(v.report.Keys, signed.Key)
	}
	if s.witness != "" {
		v.report.Witnesses = append(v.report.Witnesses, s.witness)
	}
	v.trustRotations(signed.Key)
}

// open checks the signature of a state, or says what is wrong with it.
func (v *verifier) open(s outsideState) (*checkpoint.Signed, Fault) {
	signed, err := checkpoint.Open(s.note, v.trusted)
	f := Fault{Class: FaultCheckpointForged, Seq: s.parsed.Size}
	switch {
	case err == nil && signed.Origin == v.report.Origin:
		return signed, f
	case err == nil:
		f.Detail = s.from + " is of another log, " + signed.Origin
	case errors.Is(err, checkpoint.ErrUntrusted):
		f.Class, f.Detail = FaultKeyUntrusted, s.from+": "+err.Error()
	default:
		f.Detail = s.from + ": " + err.Error()
	}
	return nil, f
}

// loadNext reads the first stored checkpoint of at least the given size.
func (v *verifier) loadNext(ctx context.Context, size int64) error {
	v.next = storedCheckpoint{}
	err := v.reader.db.QueryRowContext(ctx, `SELECT size, note FROM checkpoints WHERE size BETWEEN ? AND ? ORDER BY size LIMIT 1`,
		max(1, size), v.lastState).
		Scan(&v.next.size, &v.next.note)
	if isNoRows(err) {
		return nil
	}
	if err != nil {
		return fault(v.reader.path, "reading the checkpoints", err)
	}
	c, err := checkpoint.Parse(string(v.next.note))
	if err != nil || c.Size != v.next.size {
		v.add(Fault{Class: FaultCheckpointForged, Seq: v.next.size, Detail: "a stored checkpoint is malformed or not of the size it is stored under"})
		return v.loadNext(ctx, v.next.size+1)
	}
	return nil
}

// noteRotation remembers a change of keys until a checkpoint covers it.
func (v *verifier) noteRotation(row *checkedRow) {
	var change keyChange
	if json.Unmarshal(row.body, &change) == nil && change.Event == keyRotated {
		v.rotations = append(v.rotations, rotation{row.seq, change})
	}
}

// trustRotations extends trust, under a good checkpoint signed with key, to the
// keys that the records it covers name as its successors.
func (v *verifier) trustRotations(key string) {
	for _, r := range v.rotations {
		if r.change.Previous == key {
			// A key that cannot be parsed signs nothing that could be trusted.
			_ = v.trusted.Add(r.change.Key)
		}
	}
	v.rotations = nil
}
